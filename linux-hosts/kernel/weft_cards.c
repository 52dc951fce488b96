// SPDX-License-Identifier: GPL-2.0
/*
 * Simulated network cards, and the file through which Weft and the agent speak.
 *
 * A card takes packets of the kernel into a ring and sends one after the other at its rate. A place in the ring
 * is free again when the last bit of its packet has left, so that TCP small queues, byte queue limits and the
 * queueing discipline feel the card. There is no link layer: a card carries IP packets, and says how many bytes
 * of framing each one costs.
 */
#include <linux/etherdevice.h>
#include <linux/fs.h>
#include <linux/if_arp.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/time-internal.h>
#include <linux/uaccess.h>
#include "weft.h"

struct weft_card {
	struct net_device *dev;
	struct napi_struct napi;
	int number;
	u64 byte_ps_scaled, lookahead_ns;
	unsigned int overhead_bytes, min_bytes, ring;
	u64 busy_until_ps;
	struct sk_buff_head sending;	/* in the ring, in order; control block: when its last bit leaves */
	struct sk_buff_head arrived;	/* not yet seen by NAPI */
	struct time_travel_event sent;
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
static struct sk_buff_head lines;
static DECLARE_WAIT_QUEUE_HEAD(lines_wait);

static u64 service_ps(const struct weft_card *card, unsigned int bytes)
{
	u64 wire = max(bytes + card->overhead_bytes, card->min_bytes);

	/* As Weft rounds the service of its links. */
	return (wire * card->byte_ps_scaled + 0xffff) >> 16;
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
	begin = max(card->busy_until_ps, weft_now() * 1000);
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

static int card_poll(struct napi_struct *napi, int budget)
{
	struct weft_card *card = container_of(napi, struct weft_card, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&card->arrived))) {
		napi_gro_receive(napi, skb);
		done++;
	}
	if (done < budget)
		napi_complete_done(napi, done);
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
	skb_queue_purge(&card->arrived);
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
	time_travel_set_event_fn(&card->sent, card_sent);
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
			skb_queue_tail(&lines, a->skb);
			wake_up_interruptible(&lines_wait);
		} else if (netif_running(a->card->dev)) {
			a->skb->dev = a->card->dev;
			a->card->dev->stats.rx_packets++;
			a->card->dev->stats.rx_bytes += a->skb->len;
			skb_queue_tail(&a->card->arrived, a->skb);
			napi_schedule(&a->card->napi);
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

/* /dev/weft: a line a read, a line a write. */

static ssize_t agent_read(struct file *file, char __user *to, size_t room, loff_t *pos)
{
	struct sk_buff *skb = skb_dequeue(&lines);
	ssize_t n;

	if (!skb)
		return -EAGAIN;
	n = min_t(size_t, room, skb->len);
	if (copy_to_user(to, skb->data, n))
		n = -EFAULT;
	kfree_skb(skb);
	return n;
}

static void fill_from_memory(void *to, unsigned int bytes, const void *from)
{
	memcpy(to, from, bytes);
}

static ssize_t agent_write(struct file *file, const char __user *from, size_t bytes, loff_t *pos)
{
	static char line[WEFT_MAX_TEXT];
	unsigned long flags;

	if (bytes > sizeof(line))
		return -EMSGSIZE;
	if (copy_from_user(line, from, bytes))
		return -EFAULT;
	local_irq_save(flags);
	weft_link_record(WEFT_TEXT, 0, weft_now(), bytes, fill_from_memory, line);
	local_irq_restore(flags);
	return bytes;
}

static __poll_t agent_poll(struct file *file, poll_table *wait)
{
	poll_wait(file, &lines_wait, wait);
	return EPOLLOUT | EPOLLWRNORM | (skb_queue_empty(&lines) ? 0 : EPOLLIN | EPOLLRDNORM);
}

static const struct file_operations agent_file = {
	.owner = THIS_MODULE,
	.read = agent_read,
	.write = agent_write,
	.poll = agent_poll,
	.llseek = noop_llseek,
};

static struct miscdevice agent_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "weft",
	.fops = &agent_file,
};

static int __init weft_init(void)
{
	int number, failed;

	skb_queue_head_init(&lines);
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
	return misc_register(&agent_device);
}
device_initcall(weft_init);
