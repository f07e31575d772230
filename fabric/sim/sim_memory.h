/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations: their keys, who may reach what, and every access of a device to memory. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "sim/sim_device.h"

/* Control operations. 0 or -errno. */
int sim_mr_register(struct sim_device *dev, struct fab_ctl *ctl);
int sim_mr_deregister(struct sim_device *dev, struct fab_ctl *ctl);
void sim_mr_free(struct sim_mr *mr);

/* Memory of a device's own kind (fab_mem_alloc_for()). */
int sim_mem_alloc(struct fab *fab, size_t size, struct fab_mem *out);
/* What is left of it, at a crash. */
void sim_mem_free_left(struct sim_object *o);

/* On whose behalf memory is accessed. */
struct sim_on_behalf {
    bool remote;
    uint32_t node, qpn;
    uint64_t wr_id;
};

/* Where `bytes` from addr on are, if the key names a region of that domain that allows it; NULL. */
const struct sim_mr *sim_mr_find(const struct sim_device *dev, const struct fab_pd *pd,
                                 uint32_t key, uint64_t addr, uint64_t bytes, unsigned access);
/* Moves bytes out of a region that was found, or into it. What is aligned and no longer than 8
 * bytes is moved whole. */
void sim_mr_read(const struct sim_mr *mr, uint64_t addr, void *to, uint32_t bytes,
                 const struct sim_on_behalf *whose);
void sim_mr_write(const struct sim_mr *mr, uint64_t addr, const void *from, uint32_t bytes,
                  const struct sim_on_behalf *whose);
/* Carries out an atomic; returns what was there. */
uint64_t sim_mr_atomic(const struct sim_mr *mr, uint64_t addr, enum ibv_wr_opcode opcode,
                       uint64_t compare_add, uint64_t swap, const struct sim_on_behalf *whose);

/* Over a list of SGEs, of which `skip` bytes come before: the bytes that were moved, all of them;
 * or, with false, that one of the SGEs is not sound, and nothing was moved behind it. */
bool sim_sges_read(const struct sim_device *dev, const struct fab_pd *pd, const struct ibv_sge *sge,
                   uint32_t num_sge, uint32_t skip, void *to, uint32_t bytes,
                   const struct sim_on_behalf *whose);
bool sim_sges_write(const struct sim_device *dev, const struct fab_pd *pd,
                    const struct ibv_sge *sge, uint32_t num_sge, uint32_t skip, const void *from,
                    uint32_t bytes, const struct sim_on_behalf *whose);
/* Whether all of them may be read, or written. */
bool sim_sges_are_sound(const struct sim_device *dev, const struct fab_pd *pd,
                        const struct ibv_sge *sge, uint32_t num_sge, unsigned access);

#endif
