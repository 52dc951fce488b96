// SPDX-License-Identifier: GPL-2.0
/* /dev/weft, through which Weft and the agent speak: a line a read, a line a write. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/poll.h>
#include <linux/skbuff.h>
#include <linux/uaccess.h>
#include "weft.h"

static struct sk_buff_head lines;
static DECLARE_WAIT_QUEUE_HEAD(lines_wait);

void weft_agent_hears(struct sk_buff *line)
{
	skb_queue_tail(&lines, line);
	wake_up_interruptible(&lines_wait);
}

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

int __init weft_agent_init(void)
{
	skb_queue_head_init(&lines);
	return misc_register(&agent_device);
}
