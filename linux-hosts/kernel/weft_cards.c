// SPDX-License-Identifier: GPL-2.0
/*
 * Simulated network cards.
 *
 * A card takes packets of the kernel into a ring and sends one after the other at its rate. A place in the ring
 * is free again when the last bit of its packet has left, so that TCP small queues, byte queue limits and the
 * queueing discipline feel the card. There is no link layer: a card carries IP packets, and says how many bytes
 * of framing each one costs.
 *
 * Packets that arrive wait in the receive ring for an interrupt: it comes at once, or when the first has waited
 * for so long, or so many wait. From then until the ring is empty the host's CPU works on them, without further
 * interrupts. If packets cost CPU time, the CPU takes what waits (without GRO: one packet), works for as long as
 * these cost, and hands them to the stack at the end; a packet that is sent is worked on before the card has it.
 * A host has one such CPU, which does one thing after the other in the order in which they come up.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/time-internal.h>
#include "weft.h"

struct weft_card {
	struct net_device *dev;
	struct napi_struct napi;
	int number;
	u64 byte_ps_scaled, lookahead_ns;
	unsigned int overhead_bytes, min_bytes, ring;
	u64 interrupt_ns, cpu_packet_ps, cpu_byte_ps;
	unsigned int receive_ring, receive_offload, interrupt_packets;
	u64 busy_until_ps, cpu_until_ps;
	struct sk_buff_head sending;	/* in the ring, in order; control block: when its last bit leaves */
	struct sk_buff_head arrived;	/* in the receive ring */
	struct sk_buff_head ready;	/* the CPU has worked on them; for NAPI */
	unsigned int batch;		/* so many of the receive ring the CPU works on now */
	bool polling;			/* interrupts are off: the CPU comes to what is in the ring */
	struct time_travel_event sent, interrupt, worked;
};

struct sending {
	u64 until_ps;
	unsigned int bytes;
};

static struct weft_card *cards[WEFT_MAX_CARDS];
static int card_count;

/* What Weft has sent for a later instant, in order of time. */
struct arrival {
	struct list_head list;
	u64 time;
	struct weft_card *card;		/* NULL: a line for the agent */
	struct sk_buff *skb;		/* a packet, or the line */
};
static LIST_HEAD(arrivals);
static struct time_travel_event arrival_event;

static u64 service_ps(const struct weft_card *card, unsigned int bytes)
{
	u64 wire = max(bytes + card->overhead_bytes, card->min_bytes);

	/* As Weft rounds the service of its links. */
	return (wire * card->byte_ps_scaled + 0xffff) >> 16;
}

static u64 cpu_cost_ps(const struct weft_card *card, const struct sk_buff *skb)
{
	return card->cpu_packet_ps + card->cpu_byte_ps * skb->len;
}

/* Work for the CPU, after all that it has to do; returns when it is done. */
static u64 cpu_work_ps(struct weft_card *card, u64 cost_ps)
{
	card->cpu_until_ps = max_t(u64, card->cpu_until_ps, weft_now() * 1000) + cost_ps;
	return card->cpu_until_ps;
}

/* The last bit of one packet or several has left: their places are free. */
static void card_sent(struct time_travel_event *event)
{
	struct weft_card *card = container_of(event, struct weft_card, sent);
	u64 now_ps = weft_now() * 1000;
	unsigned int packets = 0, bytes = 0;
	struct sk_buff *skb;

	while ((skb = skb_peek(&card->sending))) {
		struct sending *s = (void *)skb->cb;

		if (s->until_ps > now_ps) {
			weft_event_at(&card->sent, DIV_ROUND_UP_ULL(s->until_ps, 1000), 0);
			break;
		}
		__skb_unlink(skb, &card->sending);
		packets++;
		bytes += s->bytes;
		dev_consume_skb_irq(skb);
	}
	netdev_completed_queue(card->dev, packets, bytes);
	if (netif_queue_stopped(card->dev) && card->sending.qlen < card->ring)
		netif_wake_queue(card->dev);
}

static void fill_from_skb(void *to, unsigned int bytes, const void *from)
{
	if (skb_copy_bits(from, 0, to, bytes))
		memset(to, 0, bytes);
}

static netdev_tx_t card_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct weft_card *card = *(struct weft_card **)netdev_priv(dev);
	struct sending *s = (void *)skb->cb;
	unsigned long flags;
	u64 begin;

	if (!card->byte_ps_scaled || skb->len > WEFT_MAX_PACKET ||
	    (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))) {
		dev->stats.tx_dropped++;
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	local_irq_save(flags);
	begin = max(card->busy_until_ps, cpu_work_ps(card, cpu_cost_ps(card, skb)));
	card->busy_until_ps = begin + service_ps(card, skb->len);
	weft_link_record(WEFT_PACKET, card->number, begin, skb->len, fill_from_skb, skb);
	weft_stop_before(div_u64(begin, 1000) + card->lookahead_ns);

	s->until_ps = card->busy_until_ps;
	s->bytes = skb->len;
	dev->stats.tx_packets++;
	dev->stats.tx_bytes += skb->len;
	netdev_sent_queue(dev, skb->len);
	if (skb_queue_empty(&card->sending))
		weft_event_at(&card->sent, DIV_ROUND_UP_ULL(s->until_ps, 1000), 0);
	__skb_queue_tail(&card->sending, skb);
	if (card->sending.qlen >= card->ring)
		netif_stop_queue(dev);
	local_irq_restore(flags);
	return NETDEV_TX_OK;
}

/* The first `count` packets of the receive ring are for NAPI now. */
static void hand_over(struct weft_card *card, unsigned int count)
{
	while (count--)
		__skb_queue_tail(&card->ready, __skb_dequeue(&card->arrived));
	napi_schedule(&card->napi);
}

/* The CPU takes what waits in the receive ring, or has nothing to do. Interrupts are disabled. */
static void work_on_ring(struct weft_card *card)
{
	unsigned int most = card->receive_offload ? NAPI_POLL_WEIGHT : 1;
	struct sk_buff *skb;
	u64 cost_ps = 0;

	card->polling = !skb_queue_empty(&card->arrived);
	if (!card->polling)
		return;
	if (!card->cpu_packet_ps && !card->cpu_byte_ps) {
		hand_over(card, skb_queue_len(&card->arrived));
		return;
	}
	card->batch = 0;
	skb_queue_walk(&card->arrived, skb) {
		cost_ps += cpu_cost_ps(card, skb);
		if (++card->batch == most)
			break;
	}
	weft_event_at(&card->worked, DIV_ROUND_UP_ULL(cpu_work_ps(card, cost_ps), 1000), 0);
}

static void card_worked(struct time_travel_event *event)
{
	struct weft_card *card = container_of(event, struct weft_card, worked);

	hand_over(card, card->batch);
}

static void card_interrupt(struct time_travel_event *event)
{
	work_on_ring(container_of(event, struct weft_card, interrupt));
}

/* The last bit of a packet is here. */
static void card_receive(struct weft_card *card, struct sk_buff *skb)
{
	if (card->receive_ring && skb_queue_len(&card->arrived) >= card->receive_ring) {
		card->dev->stats.rx_missed_errors++;
		dev_kfree_skb_irq(skb);
		return;
	}
	card->dev->stats.rx_packets++;
	card->dev->stats.rx_bytes += skb->len;
	skb->dev = card->dev;
	__skb_queue_tail(&card->arrived, skb);
	if (card->polling)
		return;
	if (!card->interrupt_ns || skb_queue_len(&card->arrived) == card->interrupt_packets) {
		time_travel_del_event(&card->interrupt);
		work_on_ring(card);
	} else if (skb_queue_len(&card->arrived) == 1) {
		weft_event_at(&card->interrupt, weft_now() + card->interrupt_ns, 0);
	}
}

static int card_poll(struct napi_struct *napi, int budget)
{
	struct weft_card *card = container_of(napi, struct weft_card, napi);
	unsigned long flags;
	struct sk_buff *skb;
	int done = 0;

	while (done < budget) {
		local_irq_save(flags);
		skb = __skb_dequeue(&card->ready);
		local_irq_restore(flags);
		if (!skb)
			break;
		if (card->receive_offload)
			napi_gro_receive(napi, skb);
		else
			netif_receive_skb(skb);
		done++;
	}
	/* Only now, after what the stack has answered, the CPU is for the packets that arrived meanwhile. */
	if (done < budget && napi_complete_done(napi, done)) {
		local_irq_save(flags);
		work_on_ring(card);
		local_irq_restore(flags);
	}
	return done;
}

static int card_open(struct net_device *dev)
{
	struct weft_card *card = *(struct weft_card **)netdev_priv(dev);

	napi_enable(&card->napi);
	netif_start_queue(dev);
	return 0;
}

static int card_stop(struct net_device *dev)
{
	struct weft_card *card = *(struct weft_card **)netdev_priv(dev);

	netif_stop_queue(dev);
	napi_disable(&card->napi);
	time_travel_del_event(&card->interrupt);
	time_travel_del_event(&card->worked);
	skb_queue_purge(&card->arrived);
	skb_queue_purge(&card->ready);
	card->polling = false;
	return 0;
}

static const struct net_device_ops card_ops = {
	.ndo_open = card_open,
	.ndo_stop = card_stop,
	.ndo_start_xmit = card_xmit,
};

static void card_shape(struct net_device *dev)
{
	dev->type = ARPHRD_NONE;
	dev->flags = IFF_POINTOPOINT | IFF_NOARP;
	dev->mtu = ETH_DATA_LEN;
	dev->min_mtu = 576;
	dev->max_mtu = WEFT_MAX_PACKET;
	dev->tx_queue_len = 1000;	/* 0 would mean: no queueing discipline */
	dev->netdev_ops = &card_ops;
	dev->hw_features = NETIF_F_SG | NETIF_F_HW_CSUM;
	dev->features = dev->hw_features;
}

static int make_card(int number)
{
	struct weft_card *card = kzalloc(sizeof(*card), GFP_KERNEL);
	struct net_device *dev = alloc_netdev(sizeof(card), "weft%d", NET_NAME_ENUM, card_shape);

	if (!card || !dev)
		return -ENOMEM;
	*(struct weft_card **)netdev_priv(dev) = card;
	card->dev = dev;
	card->number = number;
	__skb_queue_head_init(&card->sending);
	skb_queue_head_init(&card->arrived);
	skb_queue_head_init(&card->ready);
	time_travel_set_event_fn(&card->sent, card_sent);
	time_travel_set_event_fn(&card->interrupt, card_interrupt);
	time_travel_set_event_fn(&card->worked, card_worked);
	netif_napi_add(dev, &card->napi, card_poll);
	cards[number] = card;
	return register_netdev(dev);
}

static int card_setup(struct weft_card *card, const struct weft_card_setup *setup)
{
	if (!setup->byte_ps_scaled || !setup->ring || setup->mtu < 576 || setup->mtu > WEFT_MAX_PACKET)
		return -EINVAL;
	card->byte_ps_scaled = setup->byte_ps_scaled;
	card->lookahead_ns = setup->lookahead_ns;
	card->overhead_bytes = setup->overhead_bytes;
	card->min_bytes = setup->min_bytes;
	card->ring = setup->ring;
	card->interrupt_ns = setup->interrupt_ns;
	card->interrupt_packets = setup->interrupt_packets;
	card->cpu_packet_ps = setup->cpu_packet_ps;
	card->cpu_byte_ps = setup->cpu_byte_ps;
	card->receive_ring = setup->receive_ring;
	card->receive_offload = setup->receive_offload;
	card->dev->mtu = setup->mtu;
	/* Before the device is up, and nobody else runs: no lock is needed. */
	if (!setup->segmentation)
		card->dev->gso_max_segs = 1;
	return 0;
}

/* It is time for the first of the arrivals, and for all others of this instant. */
static void deliver_arrivals(struct time_travel_event *event)
{
	struct arrival *a;

	while ((a = list_first_entry_or_null(&arrivals, struct arrival, list))) {
		if (a->time > weft_now()) {
			weft_event_at(&arrival_event, a->time, 1);
			return;
		}
		list_del(&a->list);
		if (!a->card) {
			weft_agent_hears(a->skb);
		} else if (netif_running(a->card->dev)) {
			card_receive(a->card, a->skb);
		} else {
			a->card->dev->stats.rx_dropped++;
			dev_kfree_skb_irq(a->skb);
		}
		kfree(a);
	}
}

static int add_arrival(struct weft_card *card, const struct weft_record *record, const void *data)
{
	struct arrival *a = kmalloc(sizeof(*a), GFP_ATOMIC);
	struct sk_buff *skb = alloc_skb(NET_SKB_PAD + record->bytes, GFP_ATOMIC);
	struct list_head *after;

	if (!a || !skb)
		weft_link_die("out of memory");
	skb_reserve(skb, NET_SKB_PAD);
	skb_put_data(skb, data, record->bytes);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IP);
	skb->pkt_type = PACKET_HOST;
	a->time = max_t(u64, record->time, weft_now());
	a->card = card;
	a->skb = skb;
	/* Most arrivals are later than all that wait. */
	list_for_each_prev(after, &arrivals)
		if (list_entry(after, struct arrival, list)->time <= a->time)
			break;
	list_add(&a->list, after);
	weft_event_at(&arrival_event, list_first_entry(&arrivals, struct arrival, list)->time, 1);
	return 0;
}

int weft_take(const struct weft_record *record, const void *data)
{
	if (record->kind == WEFT_TEXT)
		return record->bytes > WEFT_MAX_TEXT ? -EINVAL : add_arrival(NULL, record, data);
	if (record->card >= card_count)
		return -EINVAL;
	if (record->kind == WEFT_CARD && record->bytes == sizeof(struct weft_card_setup))
		return card_setup(cards[record->card], data);
	if (record->kind == WEFT_PACKET && record->bytes <= WEFT_MAX_PACKET)
		return add_arrival(cards[record->card], record, data);
	return -EINVAL;
}

static int __init weft_init(void)
{
	int number, failed;

	time_travel_set_event_fn(&arrival_event, deliver_arrivals);
	card_count = weft_link_hello();
	for (number = 0; number < card_count; number++) {
		failed = make_card(number);
		if (failed)
			return failed;
	}
	weft_link_take();
	/* From here on this kernel runs no further than it is told. */
	weft_stop_before(0);
	return weft_agent_init();
}
device_initcall(weft_init);
