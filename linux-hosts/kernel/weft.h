/* SPDX-License-Identifier: GPL-2.0 */
/* The link to Weft: one stream socket, one side speaks at a time. See docs/linux-hosts.md. */
#ifndef __UM_WEFT_H
#define __UM_WEFT_H

#define WEFT_LINK_FD		0	/* Weft gives the socket as standard input */
#define WEFT_VERSION		2
#define WEFT_MAX_CARDS		256
#define WEFT_MAX_PACKET		65535
#define WEFT_MAX_TEXT		4096
#define WEFT_BATCH		(256 * 1024)	/* bytes of records in a message, at most */

/* Kinds of messages. To Weft: */
#define WEFT_HELLO		1	/* time: WEFT_VERSION; waits for WEFT_SETUP */
#define WEFT_WAIT		2	/* time: the next event of this kernel, ns; waits for WEFT_RUN */
#define WEFT_MORE		3	/* records only; the kernel goes on */
/* From Weft: */
#define WEFT_SETUP		16	/* time: the number of cards; a record for each */
#define WEFT_RUN		17	/* time: run what is before this instant, ns */

struct weft_message {
	unsigned int kind;
	unsigned int bytes;		/* of the records that follow */
	unsigned long long time;
};

/* Kinds of records. Both ways: */
#define WEFT_PACKET		1	/* an IP packet; from Weft: time of arrival, ns; to Weft: time at which the
					 * card begins to send it, ps */
#define WEFT_TEXT		2	/* a line to the agent (time: when, ns) or from it (time: now, ns) */
/* From Weft: */
#define WEFT_CARD		3	/* struct weft_card_setup */

struct weft_record {
	unsigned short kind;
	unsigned short card;
	unsigned int bytes;		/* of what follows; padded with zeros to a multiple of 8 */
	unsigned long long time;
};

struct weft_card_setup {
	unsigned long long byte_ps_scaled;	/* ps that a byte takes, times 2^16 */
	unsigned long long lookahead_ns;	/* nothing that leaves the card comes back to any card within this */
	unsigned long long interrupt_ns;	/* from the first packet that waits to the interrupt; 0: at once */
	unsigned long long cpu_packet_ps;	/* what a packet takes of the host's CPU, each way */
	unsigned long long cpu_byte_ps;		/* and each of its bytes */
	unsigned int overhead_bytes;		/* on the wire, beside the IP packet */
	unsigned int min_bytes;			/* of packet and overhead */
	unsigned int mtu;
	unsigned int ring;			/* packets that the card takes at a time */
	unsigned int segmentation;		/* 1: the kernel may hand down large segments (GSO) */
	unsigned int receive_ring;		/* packets that wait for the CPU, at most; 0: any number */
	unsigned int receive_offload;		/* 1: packets that are seen together are joined (GRO) */
	unsigned int interrupt_packets;		/* so many that wait are an interrupt at once; 0: however many */
};

/* weft_link_user.c: runs with the C library of the host. */
void weft_link_write(const void *from, unsigned long bytes);
void weft_link_read(void *to, unsigned long bytes);
void weft_link_die(const char *why);

/* weft_link.c */
struct time_travel_event;
int weft_link_hello(void);
void weft_link_take(void);
void weft_link_wait(unsigned long long next);
void weft_link_record(int kind, int card, unsigned long long time, unsigned int bytes,
		      void (*fill)(void *to, unsigned int bytes, const void *from), const void *from);

/* weft_cards.c */
int weft_take(const struct weft_record *record, const void *data);

/* weft_agent.c */
struct sk_buff;
int weft_agent_init(void);
void weft_agent_hears(struct sk_buff *line);

/* arch/um/kernel/time.c */
unsigned long long weft_now(void);
unsigned long long weft_next_event(void);
void weft_run_until(unsigned long long ns);
void weft_stop_before(unsigned long long ns);
int weft_is_agent(void);
void weft_event_at(struct time_travel_event *event, unsigned long long ns, int first);

#endif
