/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program as on a kernel of before 6.16, which does not know SO_PASSRIGHTS: each attempt to
 * set it is answered with ENOPROTOOPT. With --6.0 as on one of before 6.0, on which a file in
 * memory cannot be immutable, and no more: ENOTTY. Not installed.
 *
 *   kedge-old-kernel [--6.0] PROGRAM [ARGUMENT...] */
#include <errno.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PASSRIGHTS = 83 };

#define LOAD(field)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))

int main(int argc, char **argv)
{
    static struct sock_filter rules[] = {
        LOAD(nr),
        UNLESS(SYS_setsockopt, 5), /* the low half of an argument: little-endian */
        LOAD(args[1]),
        UNLESS(SOL_SOCKET, 3),
        LOAD(args[2]),
        UNLESS(PASSRIGHTS, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    static struct sock_filter flags[] = {LOAD(nr),
                                         UNLESS(SYS_ioctl, 3),
                                         LOAD(args[1]),
                                         UNLESS((uint32_t)FS_IOC_SETFLAGS, 1),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const bool is_older = argc > 1 && strcmp(argv[1], "--6.0") == 0;
    const struct sock_fprog program = {.len = is_older ? sizeof flags / sizeof *flags
                                                       : sizeof rules / sizeof *rules,
                                       .filter = is_older ? flags : rules};
    argc -= is_older;
    argv += is_older;
    if (argc < 2)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("kedge-old-kernel: seccomp");
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
