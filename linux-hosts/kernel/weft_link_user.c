// SPDX-License-Identifier: GPL-2.0
/* The host's side of the link: whole reads and writes, and an end when Weft has ended. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "weft.h"

/* Ends this kernel and every process of its guests: all are in the session that main() made. */
void weft_link_die(const char *why)
{
	dprintf(2, "weft: %s\n", why);
	kill(0, SIGKILL);
	for (;;)
		pause();
}

void weft_link_write(const void *from, unsigned long bytes)
{
	while (bytes) {
		long n = write(WEFT_LINK_FD, from, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			weft_link_die("the link is closed");
		from += n;
		bytes -= n;
	}
}

void weft_link_read(void *to, unsigned long bytes)
{
	while (bytes) {
		long n = read(WEFT_LINK_FD, to, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			weft_link_die("the link is closed");
		to += n;
		bytes -= n;
	}
}
