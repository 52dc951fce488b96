// SPDX-License-Identifier: GPL-2.0
/*
 * The link to Weft. This kernel runs until an instant that Weft has named, collects what its cards send
 * meanwhile, and then hands everything over in one message and waits for the next.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include <os.h>
#include "weft.h"

/* One message: its head, then records. Only one side speaks at a time, so one buffer each is enough. */
static struct {
	struct weft_message head;
	unsigned char records[WEFT_BATCH];
} out, in;

static void send(unsigned int kind, unsigned long long time)
{
	out.head.kind = kind;
	out.head.time = time;
	weft_link_write(&out, sizeof(out.head) + out.head.bytes);
	out.head.bytes = 0;
}

static void receive(void)
{
	weft_link_read(&in.head, sizeof(in.head));
	if (in.head.bytes > sizeof(in.records))
		weft_link_die("a message is too long");
	weft_link_read(in.records, in.head.bytes);
}

/*
 * Says that this kernel is here, and hears how many cards there are and what they are like. Until then nobody
 * has named an instant, and time goes on as it likes.
 */
int weft_link_hello(void)
{
	block_signals_hard();
	send(WEFT_HELLO, WEFT_VERSION);
	receive();
	unblock_signals_hard();
	if (in.head.kind != WEFT_SETUP || in.head.time < 1 || in.head.time > WEFT_MAX_CARDS)
		weft_link_die("the number of cards is missing");
	return in.head.time;
}

/* Appends a record whose contents `fill` writes; makes room first if there is none. */
void weft_link_record(int kind, int card, unsigned long long time, unsigned int bytes,
		      void (*fill)(void *to, unsigned int bytes, const void *from), const void *from)
{
	unsigned int padded = ALIGN(bytes, 8);
	struct weft_record *record;

	if (out.head.bytes + sizeof(*record) + padded > sizeof(out.records)) {
		block_signals_hard();
		send(WEFT_MORE, weft_now());
		unblock_signals_hard();
	}
	record = (void *)(out.records + out.head.bytes);
	record->kind = kind;
	record->card = card;
	record->bytes = bytes;
	record->time = time;
	fill(record + 1, bytes, from);
	memset((void *)(record + 1) + bytes, 0, padded - bytes);
	out.head.bytes += sizeof(*record) + padded;
}

/* Works off the records of the message that came last. */
void weft_link_take(void)
{
	unsigned int at = 0;

	while (at < in.head.bytes) {
		const struct weft_record *record = (void *)(in.records + at);

		if (in.head.bytes - at < sizeof(*record) ||
		    in.head.bytes - at - sizeof(*record) < ALIGN((unsigned long)record->bytes, 8))
			weft_link_die("a record is cut off");
		if (weft_take(record, record + 1))
			weft_link_die("a record is wrong");
		at += sizeof(*record) + ALIGN(record->bytes, 8);
	}
}

/* Nothing is left to do before `next`, or before the instant that Weft has named. */
void weft_link_wait(unsigned long long next)
{
	block_signals_hard();
	send(WEFT_WAIT, next);
	receive();
	unblock_signals_hard();
	if (in.head.kind != WEFT_RUN)
		weft_link_die("a message is of the wrong kind");
	weft_run_until(in.head.time);
	weft_link_take();
}
