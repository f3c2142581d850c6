/* Preloaded into a process: lets its changes of files below one folder fail as machines fail.
 *
 * fault_plan(mode, after, part): at the change number `after` (a write, a truncation or a sync)
 *   mode 1  the process is killed before it
 *   mode 2  the process is killed in the middle of it: `part` of 256 parts are written
 *   mode 3  the disk is full from there on
 *   mode 4  the clock goes back by `part` seconds from there on
 * With fault_shadow(folder), what was synced last is kept there by inode number, and what was changed since is
 * marked, so that a power cut can be played afterwards: see power.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int mode, fired;
static long left = -1, part;
static char root[4096], shadow[4096];
static long changes;

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

static ssize_t real_write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return real(fd, data, size);
}

static ssize_t real_pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    return real(fd, data, size, at);
}

void fault_root(const char *folder) { snprintf(root, sizeof root, "%s/", folder); }
void fault_shadow(const char *folder) { snprintf(shadow, sizeof shadow, "%s", folder); }
void fault_plan(int how, long after, long share) { mode = how; left = after; part = share; fired = 0; changes = 0; }
long fault_changes(void) { return changes; }

static int ours(int fd) {
    char link[64], path[4096];
    if (!root[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return !strncmp(path, root, strlen(root));
}

static void marked(int fd, int synced) {
    struct stat found;
    char kept[4300], mark[4300], data[65536];
    if (!shadow[0] || fstat(fd, &found) || !S_ISREG(found.st_mode)) return;
    snprintf(kept, sizeof kept, "%s/%lu", shadow, (unsigned long)found.st_ino);
    snprintf(mark, sizeof mark, "%s/%lu.dirty", shadow, (unsigned long)found.st_ino);
    if (!synced) {
        int out = open(mark, O_WRONLY | O_CREAT, 0600);
        if (out >= 0) close(out);
        /* A file that is empty before its first write is a new one, whoever had its number before. */
        if (!found.st_size) unlink(kept);
        return;
    }
    int out = open(kept, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (off_t at = 0; out >= 0;) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int in = open(link, O_RDONLY);
        if (in < 0) break;
        ssize_t size;
        while ((size = read(in, data, sizeof data)) > 0) { real_write(out, data, size); at += size; }
        close(in);
        break;
    }
    if (out >= 0) close(out);
    unlink(mark);
}

/* 0: go on; 1: fail for want of room. A kill does not come back. */
static int change(int fd, const void *data, size_t size, off_t at) {
    if (!ours(fd)) return 0;
    marked(fd, 0);
    changes++;
    if (left < 0) return 0;
    if (left > 0 && --left > 0) return 0;
    fired = 1;
    if (mode == 2 && data) {
        size_t torn = size * part / 256;
        if (at < 0) real_write(fd, data, torn); else real_pwrite(fd, data, torn, at);
    }
    if (mode == 1 || mode == 2) { kill(getpid(), SIGKILL); for (;;) pause(); }
    return mode == 3;
}

ssize_t write(int fd, const void *data, size_t size) {
    if (change(fd, data, size, -1)) { errno = ENOSPC; return -1; }
    return real_write(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    if (change(fd, data, size, at)) { errno = ENOSPC; return -1; }
    return real_pwrite(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (change(fd, count ? parts[0].iov_base : 0, count ? parts[0].iov_len : 0, -1)) { errno = ENOSPC; return -1; }
    return real(fd, parts, count);
}

int ftruncate(int fd, off_t size) {
    REAL(int, "ftruncate64", int, off_t);
    change(fd, 0, 0, -1);
    return real(fd, size);
}

int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

int fsync(int fd) {
    REAL(int, "fsync", int);
    change(fd, 0, 0, -1);
    int done = real(fd);
    if (!done && ours(fd)) marked(fd, 1);
    return done;
}

int fdatasync(int fd) { return fsync(fd); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int done = real(clock, now);
    if (mode == 4 && fired && clock == CLOCK_REALTIME) now->tv_sec -= part;
    return done;
}
