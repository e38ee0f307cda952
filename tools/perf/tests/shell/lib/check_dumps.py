#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Are these dumps of a flight recorder whole? perf script reads all of each, in the order of time.
There are as many samples as the manifest states. The numbers that close_files.py counts up
have no gap that no manifest tells of, also between dumps.

usage: check_dumps.py STATE DUMP...
STATE: a file with what is known of earlier dumps of the same recorder; it need not exist
BASE_PERF: the perf that reads them
LAST_FAULTS: what was done to the recorder and its disk since the last dump that was answered
"""
import json
import os
import re
import subprocess
import sys

# With these, a child may die, or run out of tries, between the name of a dump and its manifest.
NO_MANIFEST = {'kill_child', 'kill_recorder', 'hangs', 'errors', 'full_disk'}

LINE = re.compile(r'\[\d+\] +(\d+)\.(\d{6}): +(\S+?):')
NUMBER = re.compile(r'fd: 0x([0-9a-f]+)')
# What stock perf says of lost records, of clocks, and of a /proc that took long to read
HARMLESS = re.compile(r"^(Warning:|Processed \d+ events and lost .*|Check IO.*|"
                      r"'trace' not valid for .*|)$")
SLOW_PROC = re.compile(r'[^\n]*map information files? for pre-existing.*?'
                       r'--proc-map-timeout[^\n]*', re.DOTALL)


def read_script(path):
    """The times, in us, and the numbers of a dump"""
    perf = os.environ.get('BASE_PERF', 'perf')
    # To read the symbols of the kernel takes it half a billion instructions.
    run = subprocess.run([perf, 'script', '--kallsyms', '/dev/null', '-i', path,
                          '-F', 'comm,pid,cpu,time,event,trace'],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         errors='replace', check=False)
    said = [line for line in SLOW_PROC.sub('', run.stderr).split('\n')
            if not HARMLESS.match(line)]
    if run.returncode or said:
        sys.exit(f'{path}: perf script: status {run.returncode}: {said}')
    times, numbers = [], []
    for line in run.stdout.splitlines():
        match = LINE.search(line)
        if not match:
            sys.exit(f'{path}: what is this? {line}')
        times.append(int(match[1]) * 1000000 + int(match[2]))
        match = NUMBER.search(line)
        if match:
            numbers.append(int(match[1], 16))
    return times, numbers


def read_manifest(path):
    """None if there is none: the child was killed before it wrote one."""
    try:
        with open(path + '.json', encoding='utf-8') as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def check_gaps(path, manifest, numbers, state):
    """What is lost is told: in this manifest, or in an earlier one that had the same gap"""
    told = manifest['lost'] or manifest['given_up']
    # A window that begins later than the last one ended has no part of it.
    if manifest['oldest'] < state['newest'] and numbers[0] > state['last'] + 1 and not told:
        sys.exit(f'{path}: begins at {numbers[0]}, the one before ended at {state["last"]}')
    for before, after in zip(numbers, numbers[1:]):
        if after <= before:
            sys.exit(f'{path}: {after} behind {before}')
        if after == before + 1:
            continue
        if told:
            state['gaps'].append([before, after])
        elif [before, after] not in state['gaps']:
            sys.exit(f'{path}: from {before} to {after}, and nothing was lost')


def check(path, state):
    """One dump"""
    times, numbers = read_script(path)
    manifest = read_manifest(path)
    if not times:
        sys.exit(f'{path} has no samples')
    if times != sorted(times):
        sys.exit(f'{path} is not in the order of time')
    if not manifest:
        if not NO_MANIFEST.intersection(os.environ.get('LAST_FAULTS', '').split()):
            sys.exit(f'{path} has no manifest')
        print(f'{path} has no manifest, {len(times)} samples')
        return
    if manifest['events'] != len(times):
        sys.exit(f'{path}: {len(times)} samples of {manifest["events"]}')
    if len(numbers) < 10:
        sys.exit(f'{path}: {len(numbers)} numbers')
    check_gaps(path, manifest, numbers, state)
    state['last'] = max(state['last'], numbers[-1])
    state['newest'] = max(state['newest'], manifest['newest'])
    print(f'{path}: {len(times)} samples, {manifest["window"]:.1f} s, lost {manifest["lost"]}, '
          f'given up {manifest["given_up"]}')


def main():
    """See above"""
    state_path, paths = sys.argv[1], sys.argv[2:]
    state = {'last': 0, 'newest': 0, 'gaps': []}
    if os.path.exists(state_path):
        with open(state_path, encoding='utf-8') as f:
            state = json.load(f)
    manifests = {path: read_manifest(path) for path in paths}
    # Names follow the wall clock, which may have been set.
    for path in sorted(paths, key=lambda path: (manifests[path] or {}).get('newest', 0)):
        check(path, state)
    with open(state_path, 'w', encoding='utf-8') as f:
        json.dump(state, f)


main()
