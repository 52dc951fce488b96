/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the agent know of each other. main.c says what the agent is. */
#ifndef WEFT_AGENT_H
#define WEFT_AGENT_H

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#define CARDS 256
#define LINE 4096
#define NAME 16  /* bytes of a card's device name */
#define INFO 2048 /* bytes of what is told of a connection */

enum kind { COMMANDS, LISTENER, SENDER, SAMPLER, RECEIVER, SUBFLOWS, OUTPUT, CHILDREN, GONE };

/* A file that the agent watches. */
struct end {
	enum kind kind;
	int fd, card, port, multipath;
	uint64_t id, bytes, first, last; /* sender: bytes left, connected; receiver: bytes received; subflows: id further ones */
	struct sockaddr_in peer;
	struct end *other;       /* sender and sampler: each other */
	struct program *program; /* output */
	int stream;
	struct end *next; /* of those that are over */
};

/* main.c */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tell_bytes(const void *line, size_t bytes);
void must(int ok, const char *what);
uint64_t now(void);
struct end *watch(int fd, enum kind kind, uint32_t events);
void over(struct end *e); /* closes its file; it is gone after this round */
int card_of(const char *word);

/* hosts.c */
void hosts_init(void);
void enter(int card);
void command_host(char **word);
void command_set(char **word);
void command_route(char **word);

/* subflows.c */
void command_mptcp(char **word);
void manage_subflows(struct end *e);

/* flows.c */
void command_listen(char **word);
void command_flow(char **word);
void accept_all(const struct end *listener);
void send_more(struct end *e, uint32_t events);
void receive_more(struct end *e, uint32_t events);
void sample(struct end *e);

/* info.c */
void report_counts(const struct end *sender, char *to, size_t room);
void report_sample(const struct end *sender);

/* netlink.c */
struct request;
struct request *request_new(int type, int flags, const void *header, size_t bytes);
void request_add(struct request *r, int type, const void *data, size_t bytes);
size_t request_nest(struct request *r, int type);
void request_end_nest(struct request *r, size_t nest);
int request_send(struct request *r, int protocol);
struct nlmsghdr;
struct rtattr;
const struct rtattr *attribute_of(const struct nlmsghdr *message, int type);
int netlink_family(const char *name, const char *group, uint16_t *family, uint32_t *number);

/* programs.c */
void programs_init(void);
void command_program(char *rest, size_t bytes);
void command_signal(char **word);
void read_output(struct end *e);
void reap(struct end *e);

#endif
