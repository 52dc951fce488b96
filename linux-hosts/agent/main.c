/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The first process of a Linux host's kernel (PID 1). It makes a network namespace for each card, and runs TCP
 * flows and programs as Weft says, one line a command, from one epoll loop. It never sleeps on its own: instants
 * are Weft's.
 *
 *   host CARD ADDRESS/BITS              the namespace of a card, its address, the card up
 *   set CARD PATH VALUE                 /proc/sys/PATH there, e.g. net/ipv4/tcp_sack
 *   route CARD ATTRIBUTE NUMBER         of its route: initcwnd, initrwnd, rto_min_ms, quickack, ecn
 *   mptcp CARD SUBFLOWS                 MPTCP connections from it have so many; it takes those of others
 *   listen CARD PORT PROTOCOL CC        flows may come to this port
 *   flow ID CARD ADDRESS PORT BYTES PROTOCOL CC [NAME=NUMBER...]   a flow begins now; names: see flows.c
 *   program ID CARD LIMIT DIRECTORY\0WORD\0WORD...\0   a program begins now; LIMIT: bytes of its output
 *   signal ID NUMBER                    to a program
 *   ready                               answered by the same word
 *
 * PROTOCOL is tcp or mptcp, CC the name of a congestion control. What it reports, times in ns of its own clock:
 *
 *   started ID PORT TIME                the flow's own port
 *   sample ID PORT PEER-PORT INFO...    as often as the flow says; INFO: see write_info
 *   mptcp ID SUBFLOWS FALLBACK          before `closed` of such a flow
 *   subflow ID PORT PEER-PORT INFO...   and each of its subflows
 *   closed ID CONNECTED CLOSED INFO...  the sender's end is done
 *   received CARD PORT ADDRESS PORT BYTES FIRST LAST   the receiver's end: own port, then the peer's
 *   failed ID WHAT                      the flow is over without success
 *   output ID STREAM BYTES...           of a program; STREAM: 1 output, 2 errors
 *   exited ID STATUS LEFT-OUT           it ended by itself; bytes of output beyond its limit
 *   killed ID SIGNAL LEFT-OUT           a signal ended it
 *   unstarted ID WHAT                   it cannot be run
 *   error WHAT                          nothing goes on from here
 */
#include "agent.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ROUND 256

static int weft, poll_fd;
static struct end *gone;

void tell_bytes(const void *line, size_t bytes)
{
	if (write(weft, line, bytes) < 0)
		abort();
}

void tell(const char *format, ...)
{
	char line[LINE];
	va_list more;

	va_start(more, format);
	int n = vsnprintf(line, sizeof line, format, more);
	va_end(more);
	if (n > 0)
		tell_bytes(line, n < LINE ? n : LINE - 1);
}

/* Weft ends this kernel when it reads the line. */
static void give_up(const char *what)
{
	tell("error %s: %s", what, strerror(errno));
	for (;;)
		pause();
}

void must(int ok, const char *what)
{
	if (!ok)
		give_up(what);
}

uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int card_of(const char *word)
{
	long card = word ? strtol(word, NULL, 10) : -1;

	errno = EINVAL;
	must(card >= 0 && card < CARDS, "number of a card");
	return card;
}

struct end *watch(int fd, enum kind kind, uint32_t events)
{
	struct end *e = calloc(1, sizeof *e);
	struct epoll_event event = {.events = events, .data.ptr = e};

	must(e != NULL, "memory");
	e->fd = fd;
	e->kind = kind;
	must(epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) == 0, "epoll");
	return e;
}

/*
 * An event of this round may still name it. It is no longer watched even if a child that is about to become a
 * program still has the file.
 */
void over(struct end *e)
{
	must(epoll_ctl(poll_fd, EPOLL_CTL_DEL, e->fd, NULL) == 0, "epoll");
	close(e->fd);
	e->kind = GONE;
	e->next = gone;
	gone = e;
}

static void free_gone(void)
{
	while (gone) {
		struct end *e = gone;

		gone = e->next;
		free(e);
	}
}

/* A line of words, the last of which has all that is left. */
static void split(char *line, char **word, int most)
{
	for (int i = 0; i < most && line; i++)
		word[i] = i + 1 == most ? line : strsep(&line, " ");
}

static const struct command {
	const char *name;
	int words;
	void (*run)(char **word);
} commands[] = {
	{"host", 3, command_host},     {"set", 4, command_set},   {"route", 4, command_route},
	{"mptcp", 3, command_mptcp},   {"listen", 5, command_listen}, {"flow", 9, command_flow},
	{"signal", 3, command_signal},
};

static void command(char *line, size_t bytes)
{
	char *word[9] = {0};

	if (strncmp(line, "program ", 8) == 0) {
		command_program(line + 8, bytes - 8);
		return;
	}
	if (strcmp(line, "ready") == 0) {
		tell("ready");
		return;
	}
	for (size_t n = 0; n < sizeof commands / sizeof commands[0]; n++) {
		size_t length = strlen(commands[n].name);

		if (strncmp(line, commands[n].name, length) == 0 && line[length] == ' ') {
			split(line, word, commands[n].words);
			commands[n].run(word);
			return;
		}
	}
	tell("error unknown command: %.100s", line);
}

static void read_commands(void)
{
	char line[LINE + 1];
	ssize_t n;

	while ((n = read(weft, line, LINE)) > 0) {
		line[n] = 0;
		command(line, n);
	}
}

static void handle(struct end *e, uint32_t events)
{
	switch (e->kind) {
	case COMMANDS:
		read_commands();
		break;
	case LISTENER:
		accept_all(e);
		break;
	case SENDER:
		send_more(e, events);
		break;
	case SAMPLER:
		sample(e);
		break;
	case RECEIVER:
		receive_more(e, events);
		break;
	case SUBFLOWS:
		manage_subflows(e);
		break;
	case OUTPUT:
		read_output(e);
		break;
	case CHILDREN:
		reap(e);
		break;
	case GONE:
		break;
	}
}

int main(void)
{
	struct epoll_event events[ROUND];
	/* A socket or two a flow: as many as the kernel allows (fs.nr_open). */
	const struct rlimit files = {1 << 20, 1 << 20};

	setrlimit(RLIMIT_NOFILE, &files);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	weft = open("/dev/weft", O_RDWR | O_CLOEXEC);
	if (weft < 0)
		return 1; /* the kernel panics and says so */
	hosts_init();
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	must(poll_fd >= 0, "epoll");
	watch(weft, COMMANDS, EPOLLIN);
	programs_init();
	for (;;) {
		int n = epoll_wait(poll_fd, events, ROUND, -1);

		for (int i = 0; i < n; i++)
			handle(events[i].data.ptr, events[i].events);
		free_gone();
	}
}
