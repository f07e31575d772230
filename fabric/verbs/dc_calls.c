/* SPDX-License-Identifier: Apache-2.0 */
/* libmlx5, when it is there. It is the very library that libibverbs loads for an mlx5 device, under
 * the name that programs know, so that there is one of it in the process. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs/verbs.h"

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return ibv_create_srq(pd, attr);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out)
{
    return ibv_query_port(context, port, out);
}

void verbs_calls_init(struct verbs_dc *dc)
{
    dc->calls = (struct verbs_calls){.alloc_pd = ibv_alloc_pd,
                                     .dealloc_pd = ibv_dealloc_pd,
                                     .create_cq = ibv_create_cq,
                                     .destroy_cq = ibv_destroy_cq,
                                     .create_srq = create_srq,
                                     .destroy_srq = ibv_destroy_srq,
                                     .create_qp = ibv_create_qp,
                                     .modify_qp = ibv_modify_qp,
                                     .query_qp = ibv_query_qp,
                                     .destroy_qp = ibv_destroy_qp,
                                     .query_port = query_port,
                                     .query_pkey = ibv_query_pkey,
                                     .qp_to_qp_ex = ibv_qp_to_qp_ex,
                                     .create_ah = ibv_create_ah,
                                     .destroy_ah = ibv_destroy_ah};
}

/* *function, of whatever type, becomes what the library calls name. */
static bool find_symbol(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); /* POSIX has it so that this fits */
    return symbol != NULL;
}

int verbs_dc_load(struct verbs_dc *dc, char *why, size_t size)
{
    struct verbs_calls *c = &dc->calls;
    dc->library = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);
    if (dc->library == NULL) {
        snprintf(why, size, "libmlx5.so.1 cannot be loaded (install ibverbs-providers): %.48s",
                 dlerror());
        return -ENOENT;
    }
    if (find_symbol(dc->library, "mlx5dv_is_supported", &c->dv_is_supported) &&
        find_symbol(dc->library, "mlx5dv_query_device", &c->dv_query_device) &&
        find_symbol(dc->library, "mlx5dv_create_qp", &c->dv_create_qp) &&
        find_symbol(dc->library, "mlx5dv_qp_ex_from_ibv_qp_ex", &c->dv_qp_ex))
        return 0;
    snprintf(why, size, "libmlx5.so.1 is too old for DC (install a newer rdma-core)");
    return -ENOENT;
}

void verbs_dc_unload(struct verbs_dc *dc)
{
    if (dc->library != NULL)
        (void)dlclose(dc->library);
    dc->library = NULL;
}
