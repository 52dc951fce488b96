/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flows: listeners, senders, receivers, and samples of what senders do. */
#include "agent.h"
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static char buffer[1 << 18];

static int new_socket(int card, const char *protocol, const char *control, const char **failed)
{
	int multipath = strcmp(protocol, "mptcp") == 0;
	enter(card);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, multipath ? IPPROTO_MPTCP : 0);

	*failed = "socket";
	if (s >= 0 && setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, control, strlen(control)) == 0)
		return s;
	if (s >= 0) {
		*failed = control;
		close(s);
	}
	return -1;
}

void command_listen(char **word)
{
	int card = card_of(word[1]), one = 1;
	const char *failed;

	errno = EINVAL;
	must(word[2] && word[3] && word[4], "listen");
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(atoi(word[2]))};
	int s = new_socket(card, word[3], word[4], &failed);
	must(s >= 0, failed);
	must(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0, "SO_REUSEADDR");
	must(bind(s, (void *)&any, sizeof any) == 0 && listen(s, 65535) == 0, "listen");
	struct end *e = watch(s, LISTENER, EPOLLIN);
	e->card = card;
	e->port = atoi(word[2]);
	e->multipath = strcmp(word[3], "mptcp") == 0;
}

/* What can be set for a flow's own socket; for MPTCP the kernel passes it on to the subflows. */
static const struct option {
	const char *name;
	int level, number;
} options[] = {
	{"send_buffer", SOL_SOCKET, SO_SNDBUFFORCE},
	{"receive_buffer", SOL_SOCKET, SO_RCVBUFFORCE},
	{"max_pacing_rate", SOL_SOCKET, SO_MAX_PACING_RATE},
	{"no_delay", IPPROTO_TCP, TCP_NODELAY},
	{"cork", IPPROTO_TCP, TCP_CORK},
	{"max_segment", IPPROTO_TCP, TCP_MAXSEG},
	{"user_timeout_ms", IPPROTO_TCP, TCP_USER_TIMEOUT},
	{"not_sent_low", IPPROTO_TCP, TCP_NOTSENT_LOWAT},
};

static int set_number(int s, const struct option *option, uint64_t value)
{
	int small = value;

	if (option->number == SO_MAX_PACING_RATE && option->level == SOL_SOCKET)
		return setsockopt(s, option->level, option->number, &value, sizeof value);
	return setsockopt(s, option->level, option->number, &small, sizeof small);
}

/* NAME=VALUE for the socket, before it is connected; 0, or -1 and errno. */
static int set_option(int s, const char *word, const char *value)
{
	for (size_t n = 0; n < sizeof options / sizeof options[0]; n++)
		if (strcmp(options[n].name, word) == 0)
			return set_number(s, &options[n], strtoull(value, NULL, 10));
	errno = EINVAL;
	return -1;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ns / 1000000000, ns % 1000000000};
}

/* Tells of the sender after each interval, by a timer of its own. */
static void start_samples(struct end *sender, uint64_t began, uint64_t every_ns)
{
	struct itimerspec times = {timespec_of(every_ns), timespec_of(began + every_ns)};
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	must(timer >= 0 && timerfd_settime(timer, TFD_TIMER_ABSTIME, &times, NULL) == 0, "timerfd");
	sender->other = watch(timer, SAMPLER, EPOLLIN);
	sender->other->other = sender;
}

void sample(struct end *e)
{
	uint64_t rounds;

	if (read(e->fd, &rounds, sizeof rounds) == sizeof rounds)
		report_sample(e->other);
}

static void sender_over(struct end *e)
{
	if (e->other)
		over(e->other);
	over(e);
}

static void fail(struct end *e, const char *what)
{
	tell("failed %llu %s: %s", (unsigned long long)e->id, what, strerror(errno));
	sender_over(e);
}

/* What follows the congestion control: options of the socket, and `sample_ns`. */
static int take_options(struct end *e, char *rest, uint64_t *sample_ns)
{
	char *word;

	while ((word = strsep(&rest, " "))) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = 0;
		if (value && strcmp(word, "sample_ns") == 0) {
			*sample_ns = strtoull(value, NULL, 10);
		} else if (!value || set_option(e->fd, word, value)) {
			fail(e, word);
			return -1;
		}
	}
	return 0;
}

void command_flow(char **word)
{
	struct sockaddr_in to = {.sin_family = AF_INET}, own;
	socklen_t length = sizeof own;
	const char *failed;

	errno = EINVAL;
	for (int i = 1; i <= 7; i++)
		must(word[i] != NULL, "flow");
	int card = card_of(word[2]);
	must(inet_pton(AF_INET, word[3], &to.sin_addr) == 1, "address of a flow");
	to.sin_port = htons(atoi(word[4]));
	uint64_t id = strtoull(word[1], NULL, 10), began = now(), sample_ns = 0;

	int s = new_socket(card, word[6], word[7], &failed);
	if (s < 0) {
		tell("failed %llu %s: %s", (unsigned long long)id, failed, strerror(errno));
		return;
	}
	struct end *e = watch(s, SENDER, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	e->id = id;
	e->bytes = strtoull(word[5], NULL, 10);
	e->multipath = strcmp(word[6], "mptcp") == 0;
	if (take_options(e, word[8], &sample_ns))
		return;
	if (connect(s, (void *)&to, sizeof to) && errno != EINPROGRESS) {
		fail(e, "connect");
		return;
	}
	must(getsockname(s, (void *)&own, &length) == 0, "getsockname");
	tell("started %llu %d %llu", (unsigned long long)id, ntohs(own.sin_port), (unsigned long long)began);
	if (sample_ns)
		start_samples(e, began, sample_ns);
}

/* The sender's end is done. */
static void report_closed(struct end *e)
{
	char info[INFO];

	report_counts(e, info, sizeof info);
	tell("closed %llu %llu %llu%s", (unsigned long long)e->id, (unsigned long long)e->first,
	     (unsigned long long)now(), info);
}

void send_more(struct end *e, uint32_t events)
{
	int error = 0;
	socklen_t length = sizeof error;

	if (events & EPOLLERR) {
		getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &error, &length);
		errno = error;
		fail(e, "connection");
		return;
	}
	if (!e->first && events & EPOLLOUT)
		e->first = now();
	while (e->first && e->bytes) {
		size_t part = e->bytes < sizeof buffer ? e->bytes : sizeof buffer;
		ssize_t n = write(e->fd, buffer, part);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			fail(e, "write");
			return;
		}
		e->bytes -= n;
		if (!e->bytes)
			shutdown(e->fd, SHUT_WR);
		else if ((size_t)n < part)
			return; /* the buffer is full: the next event says when there is room */
	}
	if (e->bytes || !(events & (EPOLLRDHUP | EPOLLHUP)))
		return;
	report_closed(e);
	sender_over(e);
}

/* A buffer that is read empty is told again when more comes; the end may come with the last bytes. */
void receive_more(struct end *e, uint32_t events)
{
	for (;;) {
		/* TCP discards without a copy; a read never returns less than there is. */
		ssize_t n = e->multipath ? recv(e->fd, buffer, sizeof buffer, 0)
					 : recv(e->fd, NULL, 1 << 30, MSG_TRUNC);

		if (n > 0) {
			e->last = now();
			if (!e->bytes)
				e->first = e->last;
			e->bytes += n;
			if (!e->multipath && !(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
				return;
			continue;
		}
		if (n < 0 && errno == EAGAIN)
			return;
		break;
	}
	char peer[INET_ADDRSTRLEN];
	inet_ntop(AF_INET, &e->peer.sin_addr, peer, sizeof peer);
	tell("received %d %d %s %d %llu %llu %llu", e->card, e->port, peer, ntohs(e->peer.sin_port),
	     (unsigned long long)e->bytes, (unsigned long long)e->first, (unsigned long long)e->last);
	over(e);
}

void accept_all(const struct end *listener)
{
	struct sockaddr_in peer;
	socklen_t length = sizeof peer;
	int s;

	while ((s = accept4(listener->fd, (void *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct end *e = watch(s, RECEIVER, EPOLLIN | EPOLLRDHUP | EPOLLET);

		e->card = listener->card;
		e->port = listener->port;
		e->multipath = listener->multipath;
		e->peer = peer;
		length = sizeof peer;
	}
	must(errno == EAGAIN || errno == ECONNABORTED, "accept");
}
