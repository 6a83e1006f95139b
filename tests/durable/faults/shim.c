/* A disk that remembers and that fails: loaded under a child process of the tests with LD_PRELOAD.
 *
 * For files in the folder FAULT_ROOT it can write every change (open, write, ftruncate, fsync, unlink, rename) with
 * its data into a log, and let the n-th operation of some kinds fail. Other files are left alone.
 *
 * The child steers it with ctypes: fault_record, fault_mark, fault_arm, fault_disarm, fault_count, fault_fired.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MANY 4096

enum { OPEN = 1, CREATE = 2, WRITE = 4, TRUNCATE = 8, SYNC = 16, UNLINK = 32, RENAME = 64, READ = 128 };

static char root[MANY];
static size_t root_length;
static int log_fd = -1;
static int handle_of[MANY];   /* 0: not ours */
static int next_handle = 1;
static pthread_mutex_t guard = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static int armed_kinds, armed_errno, armed_short, armed_forever;
static long armed_at, counted, fired;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("FAULT_ROOT");
    if (given && strlen(given) < sizeof root) {
        strcpy(root, given);
        root_length = strlen(root);
    }
}

static int ours(const char *path) {
    return root_length && path && !strncmp(path, root, root_length) &&
           (path[root_length] == '/' || path[root_length] == 0);
}

static int handle(int fd) { return fd >= 0 && fd < MANY ? handle_of[fd] : 0; }

/* One record: kind, errno, handle, offset, length of text, length of data; then text and data. */
struct head { int32_t kind, error, handle, text; int64_t offset, data; };

static void put(const void *bytes, size_t length) {
    const char *rest = bytes;
    while (length) {
        ssize_t done = syscall(SYS_write, log_fd, rest, length);
        if (done <= 0) _exit(99);
        rest += done;
        length -= (size_t)done;
    }
}

static void note(int kind, int error, int number, int64_t offset, const char *text, const void *data, int64_t length) {
    if (log_fd < 0) return;
    int saved = errno;
    struct head head = {kind, error, number, (int32_t)(text ? strlen(text) : 0), offset, length};
    put(&head, sizeof head);
    if (text) put(text, strlen(text));
    if (data && length) put(data, (size_t)length);
    errno = saved;
}

/* Whether this operation is the one to fail: its errno, -1 for a short write, 0 to go on. */
static int failing(int kind) {
    if (!(armed_kinds & kind)) return 0;
    counted++;
    if (counted < armed_at || (counted > armed_at && !armed_forever)) return 0;
    fired++;
    if (armed_short == 2) return counted == armed_at ? -1 : armed_errno; /* room for half of it, then for nothing */
    return armed_short ? -1 : armed_errno;
}

void fault_record(const char *path) {
    pthread_mutex_lock(&guard);
    if (log_fd >= 0) syscall(SYS_close, log_fd);
    log_fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    pthread_mutex_unlock(&guard);
}

void fault_mark(const char *text) {
    pthread_mutex_lock(&guard);
    note(0, 0, 0, 0, text, NULL, 0);
    pthread_mutex_unlock(&guard);
}

void fault_root(const char *path) {
    pthread_mutex_lock(&guard);
    strncpy(root, path, sizeof root - 1);
    root_length = strlen(root);
    pthread_mutex_unlock(&guard);
}

void fault_arm(int kinds, int error, int is_short, long at, int forever) {
    pthread_mutex_lock(&guard);
    armed_kinds = kinds; armed_errno = error; armed_short = is_short; armed_at = at; armed_forever = forever;
    counted = fired = 0;
    pthread_mutex_unlock(&guard);
}

void fault_disarm(void) { armed_kinds = 0; }
long fault_count(void) { return counted; }
long fault_fired(void) { return fired; }

/* ---- opening ---------------------------------------------------------------------------------- */

static int opening(const char *path, int flags, mode_t mode, const char *name, int (*call)(const char *, int, ...)) {
    (void)name;
    if (!ours(path)) return call(path, flags, mode);
    pthread_mutex_lock(&guard);
    struct stat found;
    int fresh = (flags & O_CREAT) && syscall(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) != 0;
    int error = failing(fresh ? CREATE : OPEN), fd = -1;
    if (error > 0) errno = error;
    else {
        fd = call(path, flags, mode);
        if (fd >= 0 && fd < MANY) {
            handle_of[fd] = next_handle++;
            note(fresh ? CREATE : OPEN, 0, handle_of[fd], (flags & O_TRUNC) != 0, path, NULL, 0);
        }
    }
    pthread_mutex_unlock(&guard);
    return fd;
}

#define OPENING(name)                                                                     \
    int name(const char *path, int flags, ...) {                                          \
        va_list more;                                                                     \
        va_start(more, flags);                                                            \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;         \
        va_end(more);                                                                     \
        return opening(path, flags, mode, #name, (int (*)(const char *, int, ...))real(#name)); \
    }
OPENING(open)
OPENING(open64)

int close(int fd) {
    if (fd >= 0 && fd < MANY) handle_of[fd] = 0;
    return REAL(close)(fd);
}

/* ---- writing ---------------------------------------------------------------------------------- */

static ssize_t writing(int fd, const void *data, size_t length, off64_t offset, int placed) {
    pthread_mutex_lock(&guard);
    ssize_t done = -1;
    int error = failing(WRITE);
    if (!placed) {
        int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);
        offset = (off64_t)syscall(SYS_lseek, fd, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
    }
    if (error > 0) errno = error;
    else {
        if (error < 0 && length > 1) length /= 2;
        done = placed ? syscall(SYS_pwrite64, fd, data, length, offset) : syscall(SYS_write, fd, data, length);
    }
    note(WRITE, done < 0 ? errno : 0, handle(fd), offset, NULL, data, done < 0 ? 0 : done);
    pthread_mutex_unlock(&guard);
    return done;
}

ssize_t write(int fd, const void *data, size_t length) {
    return handle(fd) ? writing(fd, data, length, 0, 0) : syscall(SYS_write, fd, data, length);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    return handle(fd) ? writing(fd, data, length, offset, 1) : syscall(SYS_pwrite64, fd, data, length, offset);
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

int ftruncate64(int fd, off64_t length) {
    if (!handle(fd)) return (int)syscall(SYS_ftruncate, fd, length);
    pthread_mutex_lock(&guard);
    int error = failing(TRUNCATE), done = -1;
    if (error > 0) errno = error;
    else done = (int)syscall(SYS_ftruncate, fd, length);
    note(TRUNCATE, done ? errno : 0, handle(fd), length, NULL, NULL, 0);
    pthread_mutex_unlock(&guard);
    return done;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int syncing(int fd, long number) {
    if (!handle(fd)) return (int)syscall(number, fd);
    pthread_mutex_lock(&guard);
    int error = failing(SYNC), done = -1;
    if (error > 0) errno = error;
    else done = 0; /* the recorded disk decides what survives: a true sync would only be slow */
    note(SYNC, done ? errno : 0, handle(fd), 0, NULL, NULL, 0);
    pthread_mutex_unlock(&guard);
    return done;
}
int fsync(int fd) { return syncing(fd, SYS_fsync); }
int fdatasync(int fd) { return syncing(fd, SYS_fdatasync); }

/* ---- reading: only to fail --------------------------------------------------------------------- */

static int unreadable(int fd) {
    if (!handle(fd) || !(armed_kinds & READ)) return 0;
    pthread_mutex_lock(&guard);
    int error = failing(READ);
    pthread_mutex_unlock(&guard);
    if (error > 0) errno = error;
    return error > 0;
}
ssize_t pread64(int fd, void *data, size_t length, off64_t offset) {
    return unreadable(fd) ? -1 : syscall(SYS_pread64, fd, data, length, offset);
}
ssize_t pread(int fd, void *data, size_t length, off_t offset) { return pread64(fd, data, length, offset); }
ssize_t read(int fd, void *data, size_t length) {
    return unreadable(fd) ? -1 : syscall(SYS_read, fd, data, length);
}

/* ---- names ------------------------------------------------------------------------------------ */

int unlink(const char *path) {
    if (!ours(path)) return (int)syscall(SYS_unlink, path);
    pthread_mutex_lock(&guard);
    int error = failing(UNLINK), done = -1;
    if (error > 0) errno = error;
    else done = (int)syscall(SYS_unlink, path);
    if (!done) note(UNLINK, 0, 0, 0, path, NULL, 0);
    pthread_mutex_unlock(&guard);
    return done;
}

int rename(const char *from, const char *to) {
    if (!ours(from) && !ours(to)) return (int)syscall(SYS_rename, from, to);
    pthread_mutex_lock(&guard);
    int error = failing(RENAME), done = -1;
    if (error > 0) errno = error;
    else done = (int)syscall(SYS_rename, from, to);
    if (!done) note(RENAME, 0, 0, (int64_t)strlen(from), from, to, (int64_t)strlen(to));
    pthread_mutex_unlock(&guard);
    return done;
}
