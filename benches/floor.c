// The floor of a trial: the least work that keeps the promises of a run, without an engine around it.
//
// usage: floor COUNT JOBS WORKSPACE OUT TEMPORARY PROGRAM [ARGUMENT…]
//
// Each trial gets a copy of WORKSPACE, a home and a folder for temporary files, all private. A supervisor that adopts
// orphans starts PROGRAM with three pipes, and ends when nothing is left of it. The output is read, the copy is compared
// with the original, and three small files of evidence are written below OUT: each is synced under a temporary name and
// then renamed. Then their folder is synced, the private folders are removed, and a journal gets a line before and a line
// after the trial, both synced. benches/trials.py compiles and runs it.
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int count, jobs, journal;
static const char *workspace, *out, *temporary;
static char **program;
static atomic_int next_trial = 1;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

static int must(int result, const char *what) {
    if (result < 0) err(1, "%s", what);
    return result;
}

static void put(int file, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(file, bytes, length);
        must(written < 0 ? -1 : 0, "write");
        bytes += written;
        length -= written;
    }
}

static void journal_line(int trial, const char *event) {
    char line[400];
    int length = snprintf(line, sizeof line, "{\"event\":\"%s\",\"trial\":%d,\"digest\":\"%0256d\"}\n", event, trial, 0);
    pthread_mutex_lock(&journal_lock);
    put(journal, line, length);
    must(fdatasync(journal), "sync the journal");
    pthread_mutex_unlock(&journal_lock);
}

static void copy_file(int from, int to, const char *name, mode_t mode) {
    int source = must(openat(from, name, O_RDONLY | O_CLOEXEC), name);
    int target = must(openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777), name);
    ssize_t copied;
    while ((copied = copy_file_range(source, NULL, target, NULL, 1 << 20, 0)) > 0) {}
    must(copied < 0 ? -1 : 0, "copy");
    close(source);
    close(target);
}

// Calls `each` for every entry of a folder but `.` and `..`.
static void list(int folder, void (*each)(int folder, struct dirent *entry, void *with), void *with) {
    DIR *entries = fdopendir(must(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open a folder"));
    if (!entries) err(1, "list");
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) each(folder, entry, with);
    }
    closedir(entries);
}

static int folder_in(int parent, const char *name) {
    must(mkdirat(parent, name, 0700), name);
    return must(openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), name);
}

static void copy_entry(int from, struct dirent *entry, void *with) {
    int to = *(int *)with;
    struct stat meta;
    must(fstatat(from, entry->d_name, &meta, AT_SYMLINK_NOFOLLOW), entry->d_name);
    if (S_ISREG(meta.st_mode)) return copy_file(from, to, entry->d_name, meta.st_mode);
    int inner = must(openat(from, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), entry->d_name);
    int copy = folder_in(to, entry->d_name);
    list(inner, copy_entry, &copy);
    close(inner);
    close(copy);
}

static ssize_t read_all(int file, char *bytes, size_t room) {
    size_t length = 0;
    for (ssize_t got; length < room && (got = read(file, bytes + length, room - length)) > 0;) length += got;
    return length;
}

// Compares a file or folder of the original with the copy.
static void compare_entry(int original, struct dirent *entry, void *with) {
    int copy = *(int *)with;
    struct stat before, after;
    must(fstatat(original, entry->d_name, &before, AT_SYMLINK_NOFOLLOW), entry->d_name);
    must(fstatat(copy, entry->d_name, &after, AT_SYMLINK_NOFOLLOW), entry->d_name);
    int a = must(openat(original, entry->d_name, O_RDONLY | O_CLOEXEC), entry->d_name);
    int b = must(openat(copy, entry->d_name, O_RDONLY | O_CLOEXEC), entry->d_name);
    if (S_ISDIR(before.st_mode)) {
        list(a, compare_entry, &b);
    } else {
        char old[65536], new[65536];
        ssize_t length = read_all(a, old, sizeof old);
        if (before.st_size != after.st_size || read_all(b, new, sizeof new) != length || memcmp(old, new, length))
            errx(1, "%s differs", entry->d_name);
    }
    close(a);
    close(b);
}

static void remove_entry(int folder, struct dirent *entry, void *with) {
    (void)with;
    if (entry->d_type == DT_DIR) {
        int inner = must(openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), entry->d_name);
        list(inner, remove_entry, NULL);
        close(inner);
    }
    must(unlinkat(folder, entry->d_name, entry->d_type == DT_DIR ? AT_REMOVEDIR : 0), entry->d_name);
}

// Runs the program below a supervisor, and reads its output until its end.
static void run_program(const char *folder, const char *home) {
    int output[2], errors[2];
    must(pipe2(output, O_CLOEXEC), "pipe");
    must(pipe2(errors, O_CLOEXEC), "pipe");
    pid_t supervisor = must(fork(), "fork");
    if (supervisor == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        setsid();
        must(chdir(folder), folder);
        dup2(output[1], 1);
        dup2(errors[1], 2);
        close(output[1]);
        close(errors[1]);
        char *environment[] = {(char *)home, NULL};
        pid_t pid = vfork();
        if (pid == 0) {
            setpgid(0, 0);
            execve(program[0], program, environment);
            _exit(127);
        }
        if (pid < 0) _exit(127);
        close(1);
        close(2);
        while (wait(NULL) > 0) {}
        _exit(0);
    }
    close(output[1]);
    close(errors[1]);
    char bytes[65536];
    while (read(output[0], bytes, sizeof bytes) > 0) {}
    while (read(errors[0], bytes, sizeof bytes) > 0) {}
    close(output[0]);
    close(errors[0]);
    int status;
    must(waitpid(supervisor, &status, 0), "wait");
    if (status) errx(1, "the program could not be started");
}

static void evidence(int folder, const char *name, size_t length) {
    char part[64], bytes[4096];
    memset(bytes, 'x', sizeof bytes);
    snprintf(part, sizeof part, "%s.part", name);
    int file = must(openat(folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), part);
    put(file, bytes, length);
    must(fdatasync(file), part);
    close(file);
    must(renameat(folder, part, folder, name), name);
}

static void trial(int number) {
    char own[PATH_MAX], place[PATH_MAX], name[32];
    snprintf(name, sizeof name, "%d", number);
    int trials = must(open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC), out);
    journal_line(number, "started");
    int folder = folder_in(trials, name);
    must(fsync(trials), "sync the folder of trials");
    close(trials);

    snprintf(own, sizeof own, "%s/trial-%d", temporary, number);
    must(mkdir(own, 0700), own);
    int private = must(open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC), own);
    int copy = folder_in(private, "workspace");
    close(folder_in(private, "home"));
    close(folder_in(private, "tmp"));
    int original = must(open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC), workspace);
    list(original, copy_entry, &copy);

    char home[PATH_MAX + 8];
    snprintf(place, sizeof place, "%.4000s/workspace", own);
    snprintf(home, sizeof home, "HOME=%.4000s/home", own);
    run_program(place, home);

    list(original, compare_entry, &copy);
    close(original);
    close(copy);
    evidence(folder, "wire.jsonl", 500);
    evidence(folder, "trace.jsonl", 700);
    evidence(folder, "result.json", 900);
    must(fsync(folder), "sync the trial's folder");
    close(folder);
    list(private, remove_entry, NULL);
    close(private);
    must(rmdir(own), own);
    journal_line(number, "finished");
}

static void *worker(void *with) {
    (void)with;
    for (int number; (number = atomic_fetch_add(&next_trial, 1)) <= count;) trial(number);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 7) errx(2, "usage: floor COUNT JOBS WORKSPACE OUT TEMPORARY PROGRAM [ARGUMENT…]");
    count = atoi(argv[1]);
    jobs = atoi(argv[2]);
    workspace = argv[3];
    out = argv[4];
    temporary = argv[5];
    program = argv + 6;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/journal.jsonl", out);
    journal = must(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), path);
    pthread_t threads[64];
    if (jobs > 64) jobs = 64;
    for (int n = 0; n < jobs; n++) pthread_create(&threads[n], NULL, worker, NULL);
    for (int n = 0; n < jobs; n++) pthread_join(threads[n], NULL);
}
