/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The only process of a Linux host's kernel (PID 1). It makes a network namespace for each card, and runs TCP
 * flows as Weft says, one line a command, from one epoll loop. It never sleeps on its own: instants are Weft's.
 *
 *   host CARD ADDRESS/BITS              the namespace of a card, its address, the card up
 *   set CARD PATH VALUE                 /proc/sys/PATH there, e.g. net/ipv4/tcp_sack
 *   listen CARD PORT PROTOCOL CC        flows may come to this port
 *   flow ID CARD ADDRESS PORT BYTES PROTOCOL CC   a flow begins now
 *   ready                               answered by the same word
 *
 * PROTOCOL is tcp or mptcp, CC the name of a congestion control. What it reports, times in ns of its own clock:
 *
 *   started ID PORT TIME                the flow's own port
 *   closed ID CONNECTED CLOSED INFO...  the sender's end is done; INFO: see report_info
 *   received CARD PORT ADDRESS PORT BYTES FIRST LAST   the receiver's end: own port, then the peer's
 *   failed ID WHAT                      the flow is over without success
 *   error WHAT                          nothing goes on from here
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define CARDS 256
#define LINE 4096

enum kind { COMMANDS, LISTENER, SENDER, RECEIVER };

struct end {
	enum kind kind;
	int fd, card, port, multipath;
	uint64_t id, bytes, first, last; /* sender: bytes left, connected; receiver: bytes received */
	struct sockaddr_in peer;
};

static int weft, poll_fd, outer_namespace;
static int namespaces[CARDS];
static char buffer[1 << 18];

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...)
{
	char line[LINE];
	va_list more;

	va_start(more, format);
	int n = vsnprintf(line, sizeof line, format, more);
	va_end(more);
	if (n > 0 && write(weft, line, n < LINE ? n : LINE - 1) < 0)
		abort();
}

/* Weft ends this kernel when it reads the line. */
static void give_up(const char *what)
{
	tell("error %s: %s", what, strerror(errno));
	for (;;)
		pause();
}

static void must(int ok, const char *what)
{
	if (!ok)
		give_up(what);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void enter(int namespace)
{
	must(setns(namespace, CLONE_NEWNET) == 0, "setns");
}

static int own_namespace(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	must(fd >= 0, "/proc/thread-self/ns/net");
	return fd;
}

static int card_of(const char *word)
{
	long card = word ? strtol(word, NULL, 10) : -1;

	errno = EINVAL;
	must(card >= 0 && card < CARDS, "number of a card");
	return card;
}

static void move_device(int index, int namespace)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg device;
		struct rtattr attribute;
		int namespace;
	} m = {
		.head = {sizeof m, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0},
		.device = {.ifi_family = AF_UNSPEC, .ifi_index = index},
		.attribute = {RTA_LENGTH(sizeof(int)), IFLA_NET_NS_FD},
		.namespace = namespace,
	};
	union {
		struct nlmsghdr head;
		char bytes[1024];
	} answer;
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	must(s >= 0 && send(s, &m, sizeof m, 0) == sizeof m, "netlink");
	must(recv(s, &answer, sizeof answer, 0) > 0, "netlink");
	errno = -((struct nlmsgerr *)NLMSG_DATA(&answer.head))->error;
	must(errno == 0, "moving a card to its namespace");
	close(s);
}

static void set_up(int s, const char *name)
{
	struct ifreq r = {.ifr_flags = 0};

	strcpy(r.ifr_name, name);
	must(ioctl(s, SIOCGIFFLAGS, &r) == 0, name);
	r.ifr_flags |= IFF_UP;
	must(ioctl(s, SIOCSIFFLAGS, &r) == 0, name);
}

static void command_host(char **word)
{
	int card = card_of(word[1]), bits = 32;
	char *slash = word[2] ? strchr(word[2], '/') : NULL;
	struct ifreq r = {0};
	struct sockaddr_in *address = (void *)&r.ifr_addr;

	errno = EINVAL;
	must(slash != NULL, "address of a host");
	*slash = 0;
	bits = atoi(slash + 1);
	must(bits > 0 && bits <= 32 && inet_pton(AF_INET, word[2], &address->sin_addr) == 1, "address of a host");

	snprintf(r.ifr_name, sizeof r.ifr_name, "weft%d", card);
	enter(outer_namespace);
	int index = if_nametoindex(r.ifr_name);
	must(index > 0, r.ifr_name);
	must(unshare(CLONE_NEWNET) == 0, "unshare");
	namespaces[card] = own_namespace();
	enter(outer_namespace);
	move_device(index, namespaces[card]);
	enter(namespaces[card]);

	int s = socket(AF_INET, SOCK_DGRAM, 0);
	must(s >= 0, "socket");
	set_up(s, "lo");
	address->sin_family = AF_INET;
	must(ioctl(s, SIOCSIFADDR, &r) == 0, "address of a card");
	address->sin_addr.s_addr = htonl(~0u << (32 - bits));
	must(ioctl(s, SIOCSIFNETMASK, &r) == 0, "netmask of a card");
	set_up(s, r.ifr_name);
	close(s);
}

static void command_set(char **word)
{
	char path[LINE + 16];
	int card = card_of(word[1]);

	errno = EINVAL;
	must(word[2] && word[3], "set");
	enter(namespaces[card]);
	snprintf(path, sizeof path, "/proc/sys/%s", word[2]);
	int f = open(path, O_WRONLY | O_CLOEXEC);
	must(f >= 0, path);
	/* The rest of the line: values such as those of tcp_rmem are several words. */
	must(write(f, word[3], strlen(word[3])) >= 0, path);
	close(f);
}

static int new_socket(int card, const char *protocol, const char *control, const char **failed)
{
	int multipath = strcmp(protocol, "mptcp") == 0;
	enter(namespaces[card]);
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

static struct end *watch(int fd, enum kind kind, uint32_t events)
{
	struct end *e = calloc(1, sizeof *e);
	struct epoll_event event = {.events = events, .data.ptr = e};

	must(e != NULL, "memory");
	e->fd = fd;
	e->kind = kind;
	must(epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) == 0, "epoll");
	return e;
}

static void command_listen(char **word)
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

static void fail(struct end *e, const char *what)
{
	tell("failed %llu %s: %s", (unsigned long long)e->id, what, strerror(errno));
	close(e->fd);
	free(e);
}

static void command_flow(char **word)
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
	uint64_t id = strtoull(word[1], NULL, 10), began = now();

	int s = new_socket(card, word[6], word[7], &failed);
	if (s < 0) {
		tell("failed %llu %s: %s", (unsigned long long)id, failed, strerror(errno));
		return;
	}
	struct end *e = watch(s, SENDER, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	e->id = id;
	e->bytes = strtoull(word[5], NULL, 10);
	e->multipath = strcmp(word[6], "mptcp") == 0;
	if (connect(s, (void *)&to, sizeof to) && errno != EINPROGRESS) {
		fail(e, "connect");
		return;
	}
	must(getsockname(s, (void *)&own, &length) == 0, "getsockname");
	tell("started %llu %d %llu", (unsigned long long)id, ntohs(own.sin_port), (unsigned long long)began);
}

/* What the kernel counted for a flow. MPTCP has one such block a subflow and is told without. */
static void report_closed(struct end *e)
{
	struct tcp_info i = {0};
	socklen_t length = sizeof i;
	char info[512] = "";

	if (!e->multipath && getsockopt(e->fd, IPPROTO_TCP, TCP_INFO, &i, &length) == 0)
		snprintf(info, sizeof info,
			 " retransmits=%u lost=%u segments_out=%u segments_in=%u rtt_us=%u rtt_min_us=%u rto_us=%u"
			 " cwnd=%u ssthresh=%u mss=%u delivered=%u delivered_ce=%u dsack_dups=%u reord_seen=%u"
			 " busy_us=%llu options=%u",
			 i.tcpi_total_retrans, i.tcpi_lost, i.tcpi_segs_out, i.tcpi_segs_in, i.tcpi_rtt,
			 i.tcpi_min_rtt, i.tcpi_rto, i.tcpi_snd_cwnd, i.tcpi_snd_ssthresh, i.tcpi_snd_mss,
			 i.tcpi_delivered, i.tcpi_delivered_ce, i.tcpi_dsack_dups, i.tcpi_reord_seen,
			 (unsigned long long)i.tcpi_busy_time, i.tcpi_options);
	tell("closed %llu %llu %llu%s", (unsigned long long)e->id, (unsigned long long)e->first,
	     (unsigned long long)now(), info);
}

static void send_more(struct end *e, uint32_t events)
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
	close(e->fd);
	free(e);
}

/* A buffer that is read empty is told again when more comes; the end may come with the last bytes. */
static void receive_more(struct end *e, uint32_t events)
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
	close(e->fd);
	free(e);
}

static void accept_all(const struct end *listener)
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

static void command(char *line)
{
	char *word[9] = {0}, *rest = line;

	/* `set` has three words and a rest. */
	int most = strncmp(line, "set ", 4) == 0 ? 4 : 8;
	for (int i = 0; i < most && rest; i++)
		word[i] = i + 1 == most && most == 4 ? rest : strsep(&rest, " ");
	if (strcmp(word[0], "flow") == 0)
		command_flow(word);
	else if (strcmp(word[0], "listen") == 0)
		command_listen(word);
	else if (strcmp(word[0], "host") == 0)
		command_host(word);
	else if (strcmp(word[0], "set") == 0)
		command_set(word);
	else if (strcmp(word[0], "ready") == 0)
		tell("ready");
	else
		tell("error unknown command: %s", word[0]);
}

static void read_commands(void)
{
	char line[LINE + 1];
	ssize_t n;

	while ((n = read(weft, line, LINE)) > 0) {
		line[n] = 0;
		command(line);
	}
}

int main(void)
{
	struct epoll_event events[256];
	/* A socket or two a flow: as many as the kernel allows (fs.nr_open). */
	const struct rlimit files = {1 << 20, 1 << 20};

	setrlimit(RLIMIT_NOFILE, &files);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	weft = open("/dev/weft", O_RDWR | O_CLOEXEC);
	if (weft < 0)
		return 1; /* the kernel panics and says so */
	outer_namespace = own_namespace();
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	must(poll_fd >= 0, "epoll");
	watch(weft, COMMANDS, EPOLLIN);
	for (;;) {
		int n = epoll_wait(poll_fd, events, 256, -1);

		for (int i = 0; i < n; i++) {
			struct end *e = events[i].data.ptr;

			if (e->kind == COMMANDS)
				read_commands();
			else if (e->kind == LISTENER)
				accept_all(e);
			else if (e->kind == SENDER)
				send_more(e, events[i].events);
			else
				receive_more(e, events[i].events);
		}
	}
}
