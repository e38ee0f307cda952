#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Check objects of Kubernetes against the schema of its API, without a cluster.

usage: check-kubernetes.py FILE

The schema is that of Debian's python3-kubernetes, whose classes are generated from the
OpenAPI description of Kubernetes: names and types of all fields, and which must be there.
Prints what is wrong; exit status 2: that package is not installed.
"""
import re
import sys

try:
    import yaml
    from kubernetes.client import models
except ImportError as err:
    print('check-kubernetes.py: %s: install python3-kubernetes' % err, file=sys.stderr)
    sys.exit(2)

PLAIN = {'str': str, 'int': int, 'bool': bool, 'float': (int, float), 'object': object,
         'datetime': str}


def check(value, kind, where, bad):
    """Add what is wrong with value, which should be of a kind, to bad"""
    inner = re.fullmatch(r'(list|dict)(\[|\()(str, )?(.*)[\])]', kind)
    if inner:
        if not isinstance(value, list if inner[1] == 'list' else dict):
            bad.append('%s: is no %s' % (where, inner[1]))
            return
        for key, item in value.items() if inner[1] == 'dict' else enumerate(value):
            check(item, inner[4], '%s.%s' % (where, key), bad)
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or kind != 'bool' and isinstance(value, bool):
            bad.append('%s: %r is no %s' % (where, value, kind))
    else:
        check_object(value, getattr(models, kind), where, bad)


def check_object(value, model, where, bad):
    """value is a dict with the fields of an object"""
    if not isinstance(value, dict):
        bad.append('%s: is no %s' % (where, model.__name__))
        return
    fields = {name: field for field, name in model.attribute_map.items()}
    for name, item in value.items():
        if name in fields:
            check(item, model.openapi_types[fields[name]], '%s.%s' % (where, name), bad)
        else:
            bad.append('%s.%s: there is no such field' % (where, name))
    try:
        # It checks values, and which fields must be there.
        model(**{fields[name]: item for name, item in value.items() if name in fields})
    except ValueError as err:
        bad.append('%s: %s' % (where, err))


def main():
    bad = []
    with open(sys.argv[1], encoding='utf-8') as f:
        objects = list(yaml.safe_load_all(f))
    for value in objects:
        version = str(value.get('apiVersion', '')).split('/')[-1].capitalize()
        model = getattr(models, version + str(value.get('kind')), None)
        if model:
            check_object(value, model, value['kind'], bad)
        else:
            bad.append('%s %s: there is no such object' % (value.get('apiVersion'),
                                                           value.get('kind')))
    print('\n'.join(bad) if bad else '%d objects are as the API wants them' % len(objects))
    sys.exit(bool(bad))


if __name__ == '__main__':
    main()
