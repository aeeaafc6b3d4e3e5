/* Moves the clock of a process and of its children by CLOCK_SHIFT seconds, so that tests meet other dates:
 *
 *   cc -shared -fPIC -o build/shifted_clock.so tests/support/shifted_clock.c
 *   CLOCK_SHIFT=86400 LD_PRELOAD=$PWD/build/shifted_clock.so make test
 *
 * The kernel's times of files stay, so they are moved when they are read and written. The monotonic clock stays too:
 * libfaketime moves it, and then time.sleep of Python 3.11 never returns. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

/* Looked up once: dlsym takes a lock, for which a signal handler of Postgres would wait for ever if its process held it. */
#define REAL(name)                                                      \
    ({                                                                  \
        static __typeof__(&name) real;                                  \
        if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);   \
        real;                                                           \
    })

static long shift(void) {
    const char *seconds = getenv("CLOCK_SHIFT");
    return seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = REAL(clock_gettime)(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = REAL(gettimeofday)(now, zone);
    if (!failed) now->tv_sec += shift();
    return failed;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}

#define MOVE(call)                     \
    int failed = call;                       \
    if (!failed) {                           \
        file->st_atim.tv_sec += shift();     \
        file->st_mtim.tv_sec += shift();     \
        file->st_ctim.tv_sec += shift();     \
    }                                        \
    return failed

#define FILES(type, stat, lstat, fstat, fstatat)                                                          \
    int stat(const char *restrict path, type *restrict file) { MOVE(REAL(stat)(path, file)); }      \
    int lstat(const char *restrict path, type *restrict file) { MOVE(REAL(lstat)(path, file)); }    \
    int fstat(int descriptor, type *file) { MOVE(REAL(fstat)(descriptor, file)); }                  \
    int fstatat(int directory, const char *restrict path, type *restrict file, int flags) {               \
        MOVE(REAL(fstatat)(directory, path, file, flags));                                          \
    }

FILES(struct stat, stat, lstat, fstat, fstatat)
FILES(struct stat64, stat64, lstat64, fstat64, fstatat64)

static const struct timespec *kernels(const struct timespec *times, struct timespec *copy) {
    if (!times) return NULL;
    for (int i = 0; i < 2; i++) {
        copy[i] = times[i];
        if (copy[i].tv_nsec != UTIME_NOW && copy[i].tv_nsec != UTIME_OMIT) copy[i].tv_sec -= shift();
    }
    return copy;
}

int utimensat(int directory, const char *path, const struct timespec times[2], int flags) {
    struct timespec copy[2];
    return REAL(utimensat)(directory, path, kernels(times, copy), flags);
}

int futimens(int descriptor, const struct timespec times[2]) {
    struct timespec copy[2];
    return REAL(futimens)(descriptor, kernels(times, copy));
}
