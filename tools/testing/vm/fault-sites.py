#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Which calls of our kernel code that can fail were made to fail?

The calls are read from the object files, with the address that each returns to; the faults
from the log of a kernel whose fault injection is verbose: our functions in the stack of
each, and their addresses. What is one address is one call.

usage: fault-sites.py LOG OBJECT...	prints a table; status 1 if a call was missed
"""
import re
import subprocess
import sys
from collections import Counter

# By the name that is called. What is inlined (kzalloc(), copy_struct_from_user()) calls these.
CAN_FAIL = re.compile(r'''^(?!vmalloc_to_)_*(
    (k|kv|kvre|kre|v)[mzc]?alloc|kmem_cache_alloc|kmem_cache_create|kstrn?dup|kv?memdup|
    kv?asprintf|(v?memdup|strndup)_user|alloc_(pages?|percpu|workqueue)|alloc_percpu|
    pcpu_alloc|get_free_pages|get_zeroed_page|mempool_alloc|i[dr][ar]_alloc|
    xa_(store|cmpxchg|alloc|insert|reserve)|
    kobject_(add|init_and_add|create_and_add|set_name|rename|uevent)|kset_create|
    sysfs_(add|create|merge)|device_(add|create|register)|
    anon_inode_(get|create_get)(fd|file)|get_unused_fd_flags|prepare_(kernel_)?cred|
    kthread_create|tracepoint_probe_register|audit_log_start|obj_cgroup_charge|
    perf_persistent_charge|rb_alloc|perf_event_create_kernel_counter|
    copy_(from|to)_user|clear_user|(get|put)_user(?!_ns)|check_zeroed_user
    )(_\w+)?$''', re.X)

# Called: no fault is injected there, and which test makes it fail
NOT_INJECTED = {
    '__get_user_4': 'persistent_errors passes addresses that fault',
    '__put_user_4': 'persistent_errors and persistent_session pass addresses that fault',
    '__put_user_8': 'persistent_errors and persistent_details pass addresses that fault',
    'check_zeroed_user': 'persistent_errors and rb_reserved pass addresses that fault',
    'obj_cgroup_charge': 'persistent_memcg fills the cgroup',
}

# (caller, called): how many of these calls cannot be hit, and why
CANNOT = {
    ('perf_persistent_add', 'xa_store'): (2, 'both entries were reserved before'),
    ('perf_persistent_add', '__xa_cmpxchg'): (1, 'xa_release() stores nothing'),
    # blackbox_faults makes them fail, but __GFP_NOWARN keeps that from the log.
    ('perf_blackbox_enter', 'alloc_pages_exact_noprof'): (1, 'its faults are not logged'),
    ('perf_blackbox_make_slot', '__vmalloc_noprof'): (1, 'its faults are not logged'),
    # What looks for the regions that the command line names runs before user space does.
    ('perf_blackbox_add_region', '__kmalloc_cache_noprof'): (2, 'only at boot'),
    ('perf_blackbox_add_region', 'sysfs_create_bin_file'): (1, 'only at boot'),
    ('perf_blackbox_add_region', 'sysfs_create_file_ns'): (1, 'only at boot'),
    ('perf_blackbox_add_region', 'kobject_create_and_add'): (1, 'only at boot'),
}

FRAME = re.compile(r'([A-Za-z_][\w.]*)\+0x([0-9a-f]+)/0x[0-9a-f]+')


def calls(obj):
    """(caller, address of return from its begin, called) of each call in .text"""
    out = subprocess.run(['objdump', '-dr', '--no-show-raw-insn', '-j', '.text', obj],
                         capture_output=True, text=True, check=True).stdout
    caller, begin, called, is_call = None, 0, None, False
    for line in out.splitlines():
        head = re.match(r'([0-9a-f]+) <(.*)>:$', line)
        insn = re.match(r' *([0-9a-f]+):\t(\w+)', line)
        reloc = re.search(r'R_X86_64_(?:PLT32|PC32)\s+([\w.]+)', line)
        if head or insn:
            at = int((head or insn).group(1), 16)
            if called:
                yield caller, at - begin, called
                called = None
        if head:
            caller, begin = head.group(2), at
        elif insn:
            is_call = insn.group(2).startswith('call')
        elif reloc and is_call:
            called = reloc.group(1)
            is_call = False


def faults(log, ours):
    """(function, address from its begin) of each of our calls in the stack of each fault"""
    looking, at_entry, entered, last = False, False, None, None
    with open(log, encoding='utf-8', errors='replace') as f:
        for line in f:
            if 'FAULT_INJECTION: forcing a failure' in line:
                looking, at_entry, entered = True, 'name fail_function' in line, None
            frame = FRAME.search(line)
            # A function that fails at its entry has no frame yet. Its caller is found behind
            # its own address on the stack.
            if looking and at_entry and 'RIP: 0010:' in line and frame:
                entered, last = frame.group(1), None
                continue
            is_caller = entered and frame and last == entered != frame.group(1)
            last = frame.group(1) if frame else None
            if is_caller:
                entered = None
            elif not looking or '? ' in line:
                continue
            if frame and frame.group(1) in ours:
                yield frame.group(1), int(frame.group(2), 16)
            if '</TASK>' in line:
                looking = False


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    everything = [c for obj in sys.argv[2:] for c in calls(obj)]
    ours = {caller for caller, _, _ in everything}
    can_fail = sorted(c for c in everything if CAN_FAIL.match(c[2]))
    hits = Counter(faults(sys.argv[1], ours))
    missed = Counter()

    for caller, at, called in can_fail:
        if called in NOT_INJECTED:
            print(f'{caller + f"+{at:#x}":<48} {called:<34} {NOT_INJECTED[called]}')
            continue
        print(f'{caller + f"+{at:#x}":<48} {called:<34} {hits[caller, at]:>6}')
        if not hits[caller, at]:
            missed[caller, called] += 1
    print(f'{len(can_fail)} calls that can fail, {sum(hits.values())} hits')
    bad = not can_fail or not hits
    for (caller, called), nr in missed.items():
        may, why = CANNOT.get((caller, called), (0, ''))
        if nr > may:
            bad = True
            print(f'{caller} calls {called}: {nr - may} not hit')
        else:
            print(f'{caller} calls {called}: {nr} not hit: {why}')
    sys.exit(bad)


if __name__ == '__main__':
    main()
