// SPDX-License-Identifier: GPL-2.0
/*
 * JSON is written byte by byte as people and scripts know it, and read from texts that may
 * hold anything.
 */
#include "tests.h"
#include "debug.h"
#include "util/json-reader.h"
#include "util/json-writer.h"

#include <linux/kernel.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_members(struct json_writer *w)
{
	json_writer__string(w, "name", "a \"b\\\n\xff\xc3\xa9");
	json_writer__string(w, "none", NULL);
	json_writer__known(w, "known", "yes");
	json_writer__known(w, "unknown", NULL);
	json_writer__number(w, "number", ~0ULL);
	json_writer__signed(w, "signed", -1);
	json_writer__seconds(w, "ms", 12003999999ULL, 3);
	json_writer__seconds(w, "ns", 12000000001ULL, 9);
	json_writer__bool(w, "yes", true);
	json_writer__literal(w, "literal", "1.5");
}

static void write_document(struct json_writer *w)
{
	json_writer__begin_object(w, NULL, JSON_STYLE__LINES);
	write_members(w);
	json_writer__begin_array(w, "empty", JSON_STYLE__LINES);
	json_writer__end(w);
	json_writer__begin_array(w, "lines", JSON_STYLE__LINES);
	for (int i = 0; i < 2; i++) {
		json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
		json_writer__number(w, "a", i);
		json_writer__number(w, "b", i);
		json_writer__end(w);
	}
	json_writer__end(w);
	json_writer__begin_array(w, "inline", JSON_STYLE__INLINE);
	json_writer__number(w, NULL, 1);
	json_writer__string(w, NULL, "2");
	json_writer__end(w);
	json_writer__end(w);
}

static const char document[] =
	"{\n"
	"  \"name\": \"a \\\"b\\\\\\u000a\xef\xbf\xbd\xc3\xa9\",\n"
	"  \"none\": null,\n"
	"  \"known\": \"yes\",\n"
	"  \"number\": 18446744073709551615,\n"
	"  \"signed\": -1,\n"
	"  \"ms\": 12.003,\n"
	"  \"ns\": 12.000000001,\n"
	"  \"yes\": true,\n"
	"  \"literal\": 1.5,\n"
	"  \"empty\": [],\n"
	"  \"lines\": [\n"
	"    { \"a\": 0, \"b\": 0 },\n"
	"    { \"a\": 1, \"b\": 1 }\n"
	"  ],\n"
	"  \"inline\": [1, \"2\"]\n"
	"}\n";

static int test__json_writer(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	char *text = NULL;
	struct json_writer w;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool is_same;

	if (!f)
		return TEST_FAIL;
	json_writer__init(&w, f);
	write_document(&w);
	if (fclose(f))
		return TEST_FAIL;
	is_same = !strcmp(text, document);
	if (!is_same)
		pr_debug("%s", text);
	free(text);
	return is_same ? TEST_OK : TEST_FAIL;
}

/* What a text says of "key"; @str: as a string, NULL: it is none. */
static const struct {
	const char	*text;
	const char	*value;
	const char	*str;
	bool		is_number;
} texts[] = {
	{ "{\"key\": 1}",			"1",		NULL,	true },
	{ " { \"a\" : 2 , \"key\" : 0.50 }",	"0.50",		NULL,	true },
	{ "{\"a\": \"key\", \"key\": \"b\"}",	"\"b\"",	"b",	false },
	{ "{\"a\": [{\"key\": 1}, \",\\\"}\"], \"key\": {}}", "{}", NULL, false },
	{ "{\"key\": \"\\u00e9\\ud83d\\ude00\\n\"}", "\"\\u00e9\\ud83d\\ude00\\n\"",
	  "\xc3\xa9\xf0\x9f\x98\x80\n", false },
	/* No JSON, or not what the caller wants of it */
	{ "{\"key\": \"\\u0000\\ud83d\\q\\u12\"}", "\"\\u0000\\ud83d\\q\\u12\"", "???q?u12",
	  false },
	{ "{\"a\": nonsense, \"key\": 01}",	"01",		NULL,	false },
	{ "{\"key\": -1}",			"-1",		NULL,	false },
	{ "{\"key\": 1.}",			"1.",		NULL,	false },
	{ "{\"key\": .5}",			".5",		NULL,	false },
	{ "{\"key\": }",			"",		NULL,	false },
	{ "{\"key\": \"a",			"\"a",		NULL,	false },
	{ "{\"key\": \"a\\",			"\"a\\",	NULL,	false },
	{ "{\"key\"",				NULL,		NULL,	false },
	{ "{\"key",				NULL,		NULL,	false },
	{ "{\"kex\": 1, \"keys\": 1, \"ke\": 1}", NULL,		NULL,	false },
	{ "{\"a\": [[[\"key\": 1",		NULL,		NULL,	false },
	{ "[\"key\", 1]",			NULL,		NULL,	false },
	{ "",					NULL,		NULL,	false },
};

static bool is_read_right(size_t i)
{
	struct json_value value;
	bool is_right;
	char *str;

	/* In memory of its own, so that a checker of memory sees what is read behind it. */
	str = strdup(texts[i].text);
	if (!str)
		return false;
	if (!json__find(str, "key", &value)) {
		free(str);
		return !texts[i].value;
	}
	is_right = texts[i].value && json_value__is(&value, texts[i].value) &&
		   json_value__is_number(&value) == texts[i].is_number;
	if (is_right) {
		char *copy = json_value__strdup(&value);

		is_right = !copy == !texts[i].str && (!copy || !strcmp(copy, texts[i].str));
		free(copy);
	}
	free(str);
	return is_right;
}

static int test__json_reader(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	int ret = TEST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!is_read_right(i)) {
			pr_debug("%s\n", texts[i].text);
			ret = TEST_FAIL;
		}
	}
	return ret;
}

/* The elements of arrays, with '|' behind each */
static const struct {
	const char *text, *elements;
} arrays[] = {
	{ "[]",						"" },
	{ " [ 1 , \"a,]\" ,[2,[3]],{\"b\":[4]} ] 5",	"1|\"a,]\"|[2,[3]]|{\"b\":[4]}|" },
	{ "[null]",					"null|" },
	/* No arrays, or broken ones */
	{ "",						"" },
	{ "1",						"" },
	{ "{\"a\":1}",					"" },
	{ "[1,,2]",					"1|" },
	{ "[1 2]",					"1 2|" },
	{ "[1,\"2",					"1|\"2|" },
	{ "[",						"" },
};

static int test__json_array(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	int ret = TEST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		struct json_value value;
		const char *pos = NULL;
		char elements[64];
		size_t len = 0;

		elements[0] = '\0';
		while (json__next(arrays[i].text, &pos, &value) && len < sizeof(elements))
			len += snprintf(elements + len, sizeof(elements) - len, "%.*s|",
					(int)value.len, value.text);
		if (strcmp(elements, arrays[i].elements)) {
			pr_debug("%s: %s\n", arrays[i].text, elements);
			ret = TEST_FAIL;
		}
	}
	return ret;
}

static struct test_case tests__json[] = {
	TEST_CASE("JSON that is written", json_writer),
	TEST_CASE("JSON that is read", json_reader),
	TEST_CASE("JSON that is an array", json_array),
	{	.name = NULL, }
};

struct test_suite suite__json = {
	.desc = "JSON of perf ctl and the flight recorder",
	.test_cases = tests__json,
};
