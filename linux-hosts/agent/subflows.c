/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Subflows of MPTCP. The agent is the path manager of a host's connections: once one that began there is known to be
 * multipath at both ends, the host opens all further subflows at once, each from a port of its own.
 */
#include "agent.h"
#include <linux/genetlink.h>
#include <linux/mptcp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif
/* Room for what many connections say at one instant. */
#define EVENTS (64 << 20)

static uint16_t family;

/* Connections of the host are managed from here; they say what becomes of them by a socket. */
void command_mptcp(char **word)
{
	char pm_type[] = "net/mptcp/pm_type", userspace[] = "1";
	char *set[] = {NULL, word[1], pm_type, userspace};
	struct sockaddr_nl own = {.nl_family = AF_NETLINK};
	int card = card_of(word[1]), room = EVENTS;
	uint32_t group;

	errno = EINVAL;
	must(word[2] != NULL, "mptcp");
	command_set(set);
	must(netlink_family(MPTCP_PM_NAME, MPTCP_PM_EV_GRP_NAME, &family, &group) == 0, "MPTCP");
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_GENERIC);
	must(s >= 0 && bind(s, (void *)&own, sizeof own) == 0, "socket of MPTCP");
	must(setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0, "SO_RCVBUFFORCE");
	must(setsockopt(s, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) == 0, "events of MPTCP");
	struct end *e = watch(s, SUBFLOWS, EPOLLIN);
	e->card = card;
	e->id = atoi(word[2]) - 1;
}

static void add_address(struct request *r, int type, const struct rtattr *address, const struct rtattr *port)
{
	uint16_t version = AF_INET;
	size_t nest = request_nest(r, type);

	request_add(r, MPTCP_PM_ADDR_ATTR_FAMILY, &version, sizeof version);
	request_add(r, MPTCP_PM_ADDR_ATTR_ADDR4, RTA_DATA(address), sizeof(struct in_addr));
	if (port) {
		uint16_t number = ntohs(*(uint16_t *)RTA_DATA(port));

		request_add(r, MPTCP_PM_ADDR_ATTR_PORT, &number, sizeof number);
	}
	request_end_nest(r, nest);
}

/* Another subflow of this connection, from any port to that of the first. */
static int open_subflow(const struct nlmsghdr *connection)
{
	struct genlmsghdr header = {.cmd = MPTCP_PM_CMD_SUBFLOW_CREATE, .version = MPTCP_PM_VER};
	const struct rtattr *token = attribute_of(connection, MPTCP_ATTR_TOKEN);
	const struct rtattr *own = attribute_of(connection, MPTCP_ATTR_SADDR4);
	const struct rtattr *peer = attribute_of(connection, MPTCP_ATTR_DADDR4);
	const struct rtattr *port = attribute_of(connection, MPTCP_ATTR_DPORT);

	errno = EINVAL;
	if (!token || !own || !peer || !port)
		return -1;
	struct request *r = request_new(family, 0, &header, sizeof header);
	request_add(r, MPTCP_PM_ATTR_TOKEN, RTA_DATA(token), sizeof(uint32_t));
	add_address(r, MPTCP_PM_ATTR_ADDR, own, NULL);
	add_address(r, MPTCP_PM_ATTR_ADDR_REMOTE, peer, port);
	return request_send(r, NETLINK_GENERIC);
}

static int began_here(const struct nlmsghdr *connection)
{
	const struct rtattr *server = attribute_of(connection, MPTCP_ATTR_SERVER_SIDE);

	return server && !*(uint8_t *)RTA_DATA(server);
}

/* Connections of the host have said something. */
void manage_subflows(struct end *e)
{
	union {
		struct nlmsghdr head;
		char bytes[8192];
	} message;
	ssize_t n;

	while ((n = recv(e->fd, message.bytes, sizeof message.bytes, 0)) > 0) {
		const struct genlmsghdr *header = NLMSG_DATA(&message.head);

		if (!NLMSG_OK(&message.head, (size_t)n) || message.head.nlmsg_type != family ||
		    header->cmd != MPTCP_EVENT_ESTABLISHED || !began_here(&message.head))
			continue;
		enter(e->card);
		/* A connection that ends takes no more. */
		for (uint64_t further = 0; further < e->id && open_subflow(&message.head) == 0; further++)
			;
	}
	must(n < 0 && errno == EAGAIN, "events of MPTCP");
}
