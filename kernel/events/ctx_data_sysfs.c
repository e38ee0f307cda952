// SPDX-License-Identifier: GPL-2.0
/*
 * Per-task PMU data: /sys/kernel/perf_ctx_data/
 */
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "ctx_data.h"

static ssize_t tasks_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", perf_ctx_data_tasks());
}

static struct kobj_attribute tasks_attr = __ATTR_RO(tasks);

static ssize_t bytes_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", perf_ctx_data_size() * perf_ctx_data_tasks());
}

static struct kobj_attribute bytes_attr = __ATTR_RO(bytes);

static ssize_t failures_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", perf_ctx_data_nr_failures());
}

static struct kobj_attribute failures_attr = __ATTR_RO(failures);

static struct attribute *perf_ctx_data_attrs[] = {
	&tasks_attr.attr,
	&bytes_attr.attr,
	&failures_attr.attr,
	NULL
};

static const struct attribute_group perf_ctx_data_group = {
	.attrs	= perf_ctx_data_attrs,
};

static int __init perf_ctx_data_sysfs_init(void)
{
	struct kobject *kobj;
	int err;

	if (!IS_ENABLED(CONFIG_SYSFS))
		return 0;

	kobj = kobject_create_and_add("perf_ctx_data", kernel_kobj);
	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_group(kobj, &perf_ctx_data_group);
	if (err)
		kobject_put(kobj);
	return err;
}
device_initcall(perf_ctx_data_sysfs_init);
