/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hosts: a network namespace for each card, its address and routes, and what is set there. */
#include "agent.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* From linux/in_route.h and net/dst.h, which programs do not see. */
#define FEATURE_ECN 1

static struct host {
	int namespace, bits;
	struct in_addr address;
	uint32_t metrics[RTAX_MAX + 1]; /* of its route; RTAX_LOCK: which are locked */
} hosts[CARDS];
static int outer_namespace;

static int own_namespace(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	must(fd >= 0, "/proc/thread-self/ns/net");
	return fd;
}

void hosts_init(void)
{
	outer_namespace = own_namespace();
}

static void enter_namespace(int namespace)
{
	must(setns(namespace, CLONE_NEWNET) == 0, "setns");
}

void enter(int card)
{
	enter_namespace(hosts[card].namespace);
}

static const char *device(int card)
{
	static char name[NAME];

	snprintf(name, sizeof name, "weft%d", card);
	return name;
}

static void move_device(int index, int namespace)
{
	struct ifinfomsg link = {.ifi_family = AF_UNSPEC, .ifi_index = index};
	struct request *r = request_new(RTM_NEWLINK, 0, &link, sizeof link);

	request_add(r, IFLA_NET_NS_FD, &namespace, sizeof namespace);
	must(request_send(r, NETLINK_ROUTE) == 0, "moving a card to its namespace");
}

static void set_up(int s, const char *name)
{
	struct ifreq r = {.ifr_flags = 0};

	strcpy(r.ifr_name, name);
	must(ioctl(s, SIOCGIFFLAGS, &r) == 0, name);
	r.ifr_flags |= IFF_UP;
	must(ioctl(s, SIOCSIFFLAGS, &r) == 0, name);
}

static uint32_t netmask(int bits)
{
	return htonl(~0u << (32 - bits));
}

void command_host(char **word)
{
	int card = card_of(word[1]);
	struct host *host = &hosts[card];
	char *slash = word[2] ? strchr(word[2], '/') : NULL;
	struct ifreq r = {0};
	struct sockaddr_in *address = (void *)&r.ifr_addr;

	errno = EINVAL;
	must(slash != NULL, "address of a host");
	*slash = 0;
	host->bits = atoi(slash + 1);
	must(host->bits > 0 && host->bits <= 32 && inet_pton(AF_INET, word[2], &host->address) == 1,
	     "address of a host");

	strcpy(r.ifr_name, device(card));
	enter_namespace(outer_namespace);
	int index = if_nametoindex(r.ifr_name);
	must(index > 0, r.ifr_name);
	must(unshare(CLONE_NEWNET) == 0, "unshare");
	host->namespace = own_namespace();
	enter_namespace(outer_namespace);
	move_device(index, host->namespace);
	enter(card);

	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(s >= 0, "socket");
	set_up(s, "lo");
	address->sin_family = AF_INET;
	address->sin_addr = host->address;
	must(ioctl(s, SIOCSIFADDR, &r) == 0, "address of a card");
	address->sin_addr.s_addr = netmask(host->bits);
	must(ioctl(s, SIOCSIFNETMASK, &r) == 0, "netmask of a card");
	set_up(s, r.ifr_name);
	close(s);
}

void command_set(char **word)
{
	char path[LINE + 16];
	int card = card_of(word[1]);

	errno = EINVAL;
	must(word[2] && word[3], "set");
	enter(card);
	snprintf(path, sizeof path, "/proc/sys/%s", word[2]);
	int f = open(path, O_WRONLY | O_CLOEXEC);
	must(f >= 0, path);
	/* The rest of the line: values such as those of tcp_rmem are several words. */
	must(write(f, word[3], strlen(word[3])) >= 0, path);
	close(f);
}

static void set_metric(struct host *host, const char *name, uint32_t value)
{
	uint32_t *m = host->metrics;

	if (strcmp(name, "initcwnd") == 0) {
		m[RTAX_INITCWND] = value;
	} else if (strcmp(name, "initrwnd") == 0) {
		m[RTAX_INITRWND] = value;
	} else if (strcmp(name, "rto_min_ms") == 0) {
		/* The kernel heeds it only where it is locked. */
		m[RTAX_RTO_MIN] = value;
		m[RTAX_LOCK] |= 1 << RTAX_RTO_MIN;
	} else if (strcmp(name, "quickack") == 0) {
		m[RTAX_QUICKACK] = value;
	} else if (strcmp(name, "ecn") == 0) {
		m[RTAX_FEATURES] = value ? FEATURE_ECN : 0;
	} else {
		errno = EINVAL;
		must(0, name);
	}
}

/* The route to all other hosts, which came with the address, again with the attribute. */
void command_route(char **word)
{
	struct host *host = &hosts[card_of(word[1])];

	errno = EINVAL;
	must(word[2] && word[3], "route");
	set_metric(host, word[2], strtoul(word[3], NULL, 10));
	enter(host - hosts);

	struct rtmsg route = {
		.rtm_family = AF_INET,
		.rtm_dst_len = host->bits,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_KERNEL,
		.rtm_scope = RT_SCOPE_LINK,
		.rtm_type = RTN_UNICAST,
	};
	uint32_t network = host->address.s_addr & netmask(host->bits);
	int index = if_nametoindex(device(host - hosts));
	struct request *r = request_new(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &route, sizeof route);

	request_add(r, RTA_DST, &network, sizeof network);
	request_add(r, RTA_OIF, &index, sizeof index);
	request_add(r, RTA_PREFSRC, &host->address, sizeof host->address);
	size_t nest = request_nest(r, RTA_METRICS);
	for (int metric = 1; metric <= RTAX_MAX; metric++)
		if (host->metrics[metric])
			request_add(r, metric, &host->metrics[metric], sizeof(uint32_t));
	request_end_nest(r, nest);
	must(request_send(r, NETLINK_ROUTE) == 0, "a route's attribute");
}
