/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs of the machine that the kernel runs on, as traffic. A program runs in the network namespace of its host.
 * Its root is the machine's file system, which can only be read (patch 0006); over it lie the host's own /tmp, /run,
 * /dev and /proc, which are empty in the beginning and gone in the end.
 */
#include "agent.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/machine"
#define WORDS 512
#define PART 3072 /* bytes of output in a line */

struct program {
	uint64_t id, room, left_out; /* bytes of output that may still be told; that were not */
	pid_t pid;
	struct end *streams[2];
	struct program *next;
};

static struct program *programs;
static int mounts[CARDS], names[CARDS]; /* namespaces of hosts; 0: not made yet */
static int outer_mounts, outer_names;

static int own_namespace(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	must(fd >= 0, path);
	return fd;
}

void programs_init(void)
{
	sigset_t set;

	outer_mounts = own_namespace("/proc/self/ns/mnt");
	outer_names = own_namespace("/proc/self/ns/uts");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	must(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "sigprocmask");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	must(fd >= 0, "signalfd");
	watch(fd, CHILDREN, EPOLLIN);
}

/* An own, empty folder over one of the machine, if it is there. */
static void cover(const char *path, const char *options)
{
	must(mount("tmpfs", path, "tmpfs", MS_NOSUID, options) == 0 || errno == ENOENT, path);
}

static void make_device(const char *path, int mode, int major, int minor)
{
	must(mknod(path, S_IFCHR | mode, makedev(major, minor)) == 0 && chmod(path, mode) == 0, path);
}

static void fill_devices(void)
{
	make_device(ROOT "/dev/null", 0666, 1, 3);
	make_device(ROOT "/dev/zero", 0666, 1, 5);
	make_device(ROOT "/dev/full", 0666, 1, 7);
	make_device(ROOT "/dev/random", 0666, 1, 8);
	make_device(ROOT "/dev/urandom", 0666, 1, 9);
	must(symlink("/proc/self/fd", ROOT "/dev/fd") == 0 && symlink("/proc/self/fd/0", ROOT "/dev/stdin") == 0 &&
		     symlink("/proc/self/fd/1", ROOT "/dev/stdout") == 0 &&
		     symlink("/proc/self/fd/2", ROOT "/dev/stderr") == 0 && mkdir(ROOT "/dev/shm", 01777) == 0,
	     "/dev of a host");
}

/* All hosts read the machine's files through one mount, so what one has read is there for the next. */
static void mount_machine(void)
{
	static int done;

	if (!done)
		must(mount("machine", ROOT, "hostfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "/") == 0, "hostfs");
	done = 1;
}

static void make_namespaces(int card)
{
	char name[NAME];

	mount_machine();
	must(unshare(CLONE_NEWNS | CLONE_NEWUTS) == 0, "unshare");
	cover(ROOT "/tmp", "mode=1777");
	cover(ROOT "/var/tmp", "mode=1777");
	cover(ROOT "/run", "mode=755");
	cover(ROOT "/sys", "mode=555");
	cover(ROOT "/dev", "mode=755");
	fill_devices();
	must(mount("proc", ROOT "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "/proc of a host");
	snprintf(name, sizeof name, "host%d", card);
	must(sethostname(name, strlen(name)) == 0, "sethostname");
	mounts[card] = own_namespace("/proc/self/ns/mnt");
	names[card] = own_namespace("/proc/self/ns/uts");
	must(setns(outer_mounts, CLONE_NEWNS) == 0 && setns(outer_names, CLONE_NEWUTS) == 0, "setns");
}

/* What a program may do beyond an ordinary user's rights: its host's network and its own files and processes. */
static int keeps(int capability)
{
	static const int kept[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE,     CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_KILL,	   CAP_SETGID,
				   CAP_SETUID, CAP_NET_BIND_SERVICE, CAP_NET_BROADCAST,	  CAP_NET_RAW, CAP_NET_ADMIN};

	for (size_t n = 0; n < sizeof kept / sizeof kept[0]; n++)
		if (kept[n] == capability)
			return 1;
	return 0;
}

static void become(int card, const char *directory, const char **what)
{
	/* As programs expect it; some close every file that there could be. */
	const struct rlimit files = {1024, 1 << 20};
	sigset_t none;
	int f;

	*what = "its surroundings";
	sigemptyset(&none);
	if (setns(mounts[card], CLONE_NEWNS) || setns(names[card], CLONE_NEWUTS) || chroot(ROOT) || setsid() < 0 ||
	    setrlimit(RLIMIT_NOFILE, &files) || sigprocmask(SIG_SETMASK, &none, NULL))
		return;
	/* If memory ends, it ends, and not the agent. */
	f = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (f < 0 || write(f, "1000", 4) != 4)
		return;
	for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
		if (!keeps(capability) && prctl(PR_CAPBSET_DROP, capability) && errno != EINVAL)
			return;
	*what = directory;
	if (chdir(directory))
		return;
	*what = NULL;
}

/* The child: becomes the program, or writes why not, first the error's number. */
static void run(int card, const char *directory, char **words, int output, int errors, int failure)
{
	static char *environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				      "HOME=/tmp",
				      "LANG=C.UTF-8",
				      "TZ=UTC",
				      "TERM=dumb",
				      NULL};
	const char *what;

	enter(card);
	become(card, directory, &what);
	if (!what) {
		int input = open("/dev/null", O_RDONLY);

		what = words[0];
		if (input == 0 || (input > 0 && dup2(input, 0) == 0)) {
			environ = environment; /* its PATH is where the program is looked for */
			if (dup2(output, 1) == 1 && dup2(errors, 2) == 2)
				execvp(words[0], words);
		}
	}
	int error = errno;
	if (write(failure, &error, sizeof error) == sizeof error)
		(void)!write(failure, what, strlen(what));
	_exit(127);
}

static struct end *watch_stream(struct program *p, int stream, int fd)
{
	struct end *e = watch(fd, OUTPUT, EPOLLIN);

	e->program = p;
	e->stream = stream;
	return e;
}

/* Waits until the child is the program, or for why it is not; no time passes meanwhile. */
static int has_started(uint64_t id, int failure)
{
	char what[LINE / 2] = "";
	int error;
	ssize_t n = read(failure, &error, sizeof error);

	if (n != sizeof error) {
		close(failure);
		return 1;
	}
	(void)!read(failure, what, sizeof what - 1);
	close(failure);
	tell("unstarted %llu %s: %s", (unsigned long long)id, what, strerror(error));
	return 0;
}

static void start(uint64_t id, int card, uint64_t limit, const char *directory, char **words)
{
	int output[2], errors[2], failure[2];

	if (!mounts[card])
		make_namespaces(card);
	must(pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0 && pipe2(failure, O_CLOEXEC) == 0, "pipe");
	pid_t pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0)
		run(card, directory, words, output[1], errors[1], failure[1]);
	close(output[1]);
	close(errors[1]);
	close(failure[1]);
	if (!has_started(id, failure[0])) {
		waitpid(pid, NULL, 0);
		close(output[0]);
		close(errors[0]);
		return;
	}
	struct program *p = calloc(1, sizeof *p);
	must(p != NULL, "memory");
	*p = (struct program){.id = id, .room = limit, .pid = pid, .next = programs};
	must(fcntl(output[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(errors[0], F_SETFL, O_NONBLOCK) == 0, "fcntl");
	p->streams[0] = watch_stream(p, 1, output[0]);
	p->streams[1] = watch_stream(p, 2, errors[0]);
	programs = p;
}

/* ID CARD LIMIT DIRECTORY\0WORD\0...: what is after the third space ends with a zero, as all its parts do. */
void command_program(char *rest, size_t bytes)
{
	char *words[WORDS + 1], *end = rest + bytes, *number[3];
	int count = 0;

	errno = EINVAL;
	for (int i = 0; i < 3; i++) {
		number[i] = strsep(&rest, " ");
		must(rest != NULL, "program");
	}
	char *directory = rest;
	for (rest += strlen(rest) + 1; rest < end && count < WORDS; rest += strlen(rest) + 1)
		words[count++] = rest;
	must(count > 0 && rest >= end, "program");
	words[count] = NULL;
	start(strtoull(number[0], NULL, 10), card_of(number[1]), strtoull(number[2], NULL, 10), directory, words);
}

void command_signal(char **word)
{
	errno = EINVAL;
	must(word[1] && word[2], "signal");
	for (struct program *p = programs; p; p = p->next)
		if (p->id == strtoull(word[1], NULL, 10))
			kill(-p->pid, atoi(word[2]));
}

static void tell_output(const struct program *p, int stream, const char *bytes, size_t count)
{
	char line[LINE];
	int n = snprintf(line, sizeof line, "output %llu %d ", (unsigned long long)p->id, stream);

	memcpy(line + n, bytes, count);
	tell_bytes(line, n + count);
}

/* All that is there now; 1 if more may come. */
static int drain(struct program *p, int stream, int fd)
{
	char part[PART];
	ssize_t n;

	while ((n = read(fd, part, sizeof part)) > 0) {
		size_t told = (uint64_t)n < p->room ? (size_t)n : p->room;

		if (told)
			tell_output(p, stream, part, told);
		p->room -= told;
		p->left_out += n - told;
	}
	return n < 0 && errno == EAGAIN;
}

void read_output(struct end *e)
{
	struct program *p = e->program;

	if (!drain(p, e->stream, e->fd)) {
		p->streams[e->stream - 1] = NULL;
		over(e);
	}
}

static void program_over(struct program *p, int status)
{
	/* What it has started and left behind ends with it. */
	kill(-p->pid, SIGKILL);
	for (int s = 0; s < 2; s++) {
		if (!p->streams[s])
			continue;
		drain(p, s + 1, p->streams[s]->fd);
		over(p->streams[s]);
	}
	tell("%s %llu %d %llu", WIFEXITED(status) ? "exited" : "killed", (unsigned long long)p->id,
	     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), (unsigned long long)p->left_out);
}

/* Children have ended: programs, ones that could not be started, and orphans of programs. */
void reap(struct end *e)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(e->fd, &info, sizeof info) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (struct program **at = &programs; *at; at = &(*at)->next) {
			struct program *p = *at;

			if (p->pid != pid)
				continue;
			*at = p->next;
			program_over(p, status);
			free(p);
			break;
		}
	}
}
