/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the kernel has counted for a flow: tcp_info of TCP, or of each subflow of MPTCP. */
#include "agent.h"
#include <arpa/inet.h>
#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#define MOST_SUBFLOWS 16

static void write_info(char *to, size_t room, const struct tcp_info *i)
{
	typedef unsigned long long wide;

	snprintf(to, room,
		 " retransmits=%u lost=%u segments_out=%u segments_in=%u rtt_us=%u rtt_var_us=%u rtt_min_us=%u"
		 " rto_us=%u backoff=%u cwnd=%u ssthresh=%u mss=%u delivered=%u delivered_ce=%u dsack_dups=%u"
		 " reordering=%u reord_seen=%u unacked=%u sacked=%u state=%u bytes_sent=%llu bytes_acked=%llu"
		 " bytes_retransmitted=%llu not_sent_bytes=%u peer_window_bytes=%u pacing_rate=%llu"
		 " delivery_rate=%llu busy_us=%llu window_limited_us=%llu buffer_limited_us=%llu options=%u",
		 i->tcpi_total_retrans, i->tcpi_lost, i->tcpi_segs_out, i->tcpi_segs_in, i->tcpi_rtt, i->tcpi_rttvar,
		 i->tcpi_min_rtt, i->tcpi_rto, i->tcpi_backoff, i->tcpi_snd_cwnd, i->tcpi_snd_ssthresh, i->tcpi_snd_mss,
		 i->tcpi_delivered, i->tcpi_delivered_ce, i->tcpi_dsack_dups, i->tcpi_reordering, i->tcpi_reord_seen,
		 i->tcpi_unacked, i->tcpi_sacked, i->tcpi_ca_state, (wide)i->tcpi_bytes_sent, (wide)i->tcpi_bytes_acked,
		 (wide)i->tcpi_bytes_retrans, i->tcpi_notsent_bytes, i->tcpi_snd_wnd, (wide)i->tcpi_pacing_rate,
		 (wide)i->tcpi_delivery_rate, (wide)i->tcpi_busy_time, (wide)i->tcpi_rwnd_limited,
		 (wide)i->tcpi_sndbuf_limited, i->tcpi_options);
}

/* `word` ID OWN-PORT PEER-PORT INFO... */
static void tell_info(const char *word, uint64_t id, const struct sockaddr_in *own, const struct sockaddr_in *peer,
		      const struct tcp_info *i)
{
	char info[INFO];

	write_info(info, sizeof info, i);
	tell("%s %llu %d %d%s", word, (unsigned long long)id, ntohs(own->sin_port), ntohs(peer->sin_port), info);
}

static int get_info(const struct end *sender, struct tcp_info *info)
{
	socklen_t length = sizeof *info;

	memset(info, 0, sizeof *info);
	return getsockopt(sender->fd, IPPROTO_TCP, TCP_INFO, info, &length);
}

static void sample_tcp(const struct end *sender)
{
	struct tcp_info info;
	struct sockaddr_in own = {0}, peer = {0};
	socklen_t length = sizeof own, peer_length = sizeof peer;

	if (get_info(sender, &info))
		return;
	getsockname(sender->fd, (void *)&own, &length);
	getpeername(sender->fd, (void *)&peer, &peer_length);
	tell_info("sample", sender->id, &own, &peer, &info);
}

static void tell_of_subflows(const char *word, const struct end *sender)
{
	static struct {
		struct mptcp_subflow_data head;
		struct tcp_info info[MOST_SUBFLOWS];
	} counts;
	static struct {
		struct mptcp_subflow_data head;
		struct mptcp_subflow_addrs both[MOST_SUBFLOWS];
	} addresses;
	socklen_t length = sizeof counts, address_length = sizeof addresses;

	memset(&counts, 0, sizeof counts);
	memset(&addresses, 0, sizeof addresses);
	counts.head = (struct mptcp_subflow_data){sizeof counts.head, 0, 0, sizeof counts.info[0]};
	addresses.head = (struct mptcp_subflow_data){sizeof addresses.head, 0, 0, sizeof addresses.both[0]};
	if (getsockopt(sender->fd, SOL_MPTCP, MPTCP_TCPINFO, &counts, &length) ||
	    getsockopt(sender->fd, SOL_MPTCP, MPTCP_SUBFLOW_ADDRS, &addresses, &address_length))
		return;
	/* Both list the same subflows in the same order: nothing runs in between. */
	for (unsigned int n = 0; n < counts.head.num_subflows && n < MOST_SUBFLOWS; n++)
		tell_info(word, sender->id, &addresses.both[n].sin_local, &addresses.both[n].sin_remote,
			  &counts.info[n]);
}

static void tell_of_mptcp(const struct end *sender)
{
	struct mptcp_info info = {0};
	socklen_t length = sizeof info;

	if (getsockopt(sender->fd, SOL_MPTCP, MPTCP_INFO, &info, &length))
		return;
	tell("mptcp %llu %u %d", (unsigned long long)sender->id, info.mptcpi_subflows + 1,
	     !!(info.mptcpi_flags & MPTCP_INFO_FLAG_FALLBACK));
}

/* Writes the counts of a TCP flow; MPTCP has one such block a subflow, which are told by themselves. */
void report_counts(const struct end *sender, char *to, size_t room)
{
	struct tcp_info info;

	*to = 0;
	if (sender->multipath) {
		tell_of_mptcp(sender);
		tell_of_subflows("subflow", sender);
	} else if (get_info(sender, &info) == 0) {
		write_info(to, room, &info);
	}
}

void report_sample(const struct end *sender)
{
	if (sender->multipath)
		tell_of_subflows("sample", sender);
	else
		sample_tcp(sender);
}
