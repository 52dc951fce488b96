/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One request to the kernel by netlink, and its answer. Each is made, filled, sent, and gone. */
#include "agent.h"
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
	union {
		struct nlmsghdr head;
		char bytes[2048];
	};
};

static struct request request;

struct request *request_new(int type, int flags, const void *header, size_t bytes)
{
	memset(&request, 0, sizeof request);
	request.head.nlmsg_len = NLMSG_LENGTH(bytes);
	request.head.nlmsg_type = type;
	request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	memcpy(NLMSG_DATA(&request.head), header, bytes);
	return &request;
}

void request_add(struct request *r, int type, const void *data, size_t bytes)
{
	size_t at = NLMSG_ALIGN(r->head.nlmsg_len);
	struct rtattr *attribute = (void *)(r->bytes + at);

	errno = EMSGSIZE;
	must(at + RTA_SPACE(bytes) <= sizeof r->bytes, "netlink");
	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(bytes);
	if (bytes)
		memcpy(RTA_DATA(attribute), data, bytes);
	r->head.nlmsg_len = at + RTA_SPACE(bytes);
}

/* What is added until request_end_nest is within this attribute. */
size_t request_nest(struct request *r, int type)
{
	size_t at = NLMSG_ALIGN(r->head.nlmsg_len);

	request_add(r, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void request_end_nest(struct request *r, size_t nest)
{
	((struct rtattr *)(r->bytes + nest))->rta_len = r->head.nlmsg_len - nest;
}

/* Sends it and leaves the answer in its place; 0, or -1 and errno. */
int request_send(struct request *r, int protocol)
{
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	ssize_t n = -1;

	if (s >= 0 && send(s, r->bytes, r->head.nlmsg_len, 0) >= 0)
		n = recv(s, r->bytes, sizeof r->bytes, 0);
	if (s >= 0)
		close(s);
	if (n < 0)
		return -1;
	if (r->head.nlmsg_type == NLMSG_ERROR)
		errno = -((struct nlmsgerr *)NLMSG_DATA(&r->head))->error;
	else
		errno = 0;
	return errno ? -1 : 0;
}

/* The attribute of this type among so many bytes of them, or none. */
static const struct rtattr *attribute(const struct rtattr *a, int bytes, int type)
{
	for (; RTA_OK(a, bytes); a = RTA_NEXT(a, bytes))
		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return a;
	return NULL;
}

static const struct rtattr *attribute_within(const struct rtattr *outer, int type)
{
	return attribute(RTA_DATA(outer), RTA_PAYLOAD(outer), type);
}

/* The attribute of a message of generic netlink. */
const struct rtattr *attribute_of(const struct nlmsghdr *message, int type)
{
	const char *body = NLMSG_DATA(message);

	return attribute((const void *)(body + GENL_HDRLEN), message->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), type);
}

/* Asks for a family of generic netlink: its number, and that of one of its groups. 0, or -1 and errno. */
int netlink_family(const char *name, const char *group, uint16_t *family, uint32_t *number)
{
	struct genlmsghdr header = {.cmd = CTRL_CMD_GETFAMILY, .version = 1};
	struct request *r = request_new(GENL_ID_CTRL, 0, &header, sizeof header);

	request_add(r, CTRL_ATTR_FAMILY_NAME, name, strlen(name) + 1);
	if (request_send(r, NETLINK_GENERIC))
		return -1;
	errno = ENOENT;
	const struct rtattr *found = attribute_of(&r->head, CTRL_ATTR_FAMILY_ID);
	const struct rtattr *groups = attribute_of(&r->head, CTRL_ATTR_MCAST_GROUPS);
	if (!found || !groups)
		return -1;
	*family = *(uint16_t *)RTA_DATA(found);
	int left = RTA_PAYLOAD(groups);
	for (const struct rtattr *a = RTA_DATA(groups); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		const struct rtattr *its_name = attribute_within(a, CTRL_ATTR_MCAST_GRP_NAME);
		const struct rtattr *its_number = attribute_within(a, CTRL_ATTR_MCAST_GRP_ID);

		if (its_name && its_number && strcmp(RTA_DATA(its_name), group) == 0) {
			*number = *(uint32_t *)RTA_DATA(its_number);
			return 0;
		}
	}
	return -1;
}
