//go:build unix

package admin

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// The part of JSON Schema that docs/openapi.yaml uses, and no other: a word that
// isn't known here is an error of the file's.
var schemaWords = []string{
	"$ref", "type", "properties", "required", "additionalProperties", "items", "enum", "const", "format", "oneOf",
	"description", "examples", "default",
}

type object = map[string]any

// document is docs/openapi.yaml.
func document(t *testing.T) object {
	t.Helper()
	text, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d object
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// resolve follows "#/components/schemas/NAME".
func resolve(d object, o object) (object, error) {
	for {
		ref, ok := o["$ref"].(string)
		if !ok {
			return o, nil
		}
		at := any(d)
		for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			m, _ := at.(object)
			if at, ok = m[key]; !ok {
				return nil, fmt.Errorf("%s leads nowhere", ref)
			}
		}
		o = at.(object)
	}
}

// conform is an error unless v, decoded from JSON, is as the schema says.
func conform(d, schema object, v any, path string) error {
	schema, err := resolve(d, schema)
	if err != nil {
		return err
	}
	for word := range schema {
		if !slices.Contains(schemaWords, word) {
			return fmt.Errorf("%s: this test doesn't know %q", path, word)
		}
	}
	if one, ok := schema["oneOf"].([]any); ok {
		return oneOf(d, one, v, path)
	}
	if err := conformType(schema["type"], v, path); err != nil {
		return err
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, v) {
		return fmt.Errorf("%s is %q, which is none of %v", path, v, words)
	}
	if c, ok := schema["const"]; ok && c != v {
		return fmt.Errorf("%s is %v, want %v", path, v, c)
	}
	if schema["format"] == "date-time" {
		if _, err := time.Parse(time.RFC3339, v.(string)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	switch v := v.(type) {
	case object:
		return conformObject(d, schema, v, path)
	case []any:
		items, _ := schema["items"].(object)
		for i, item := range v {
			if err := conform(d, items, item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func oneOf(d object, schemas []any, v any, path string) error {
	fit := 0
	for _, s := range schemas {
		if conform(d, s.(object), v, path) == nil {
			fit++
		}
	}
	if fit != 1 {
		return fmt.Errorf("%s fits %d of %d schemas", path, fit, len(schemas))
	}
	return nil
}

func conformType(want, v any, path string) error {
	names, _ := want.([]any)
	if name, ok := want.(string); ok {
		names = []any{name}
	}
	for _, name := range names {
		ok := false
		switch v := v.(type) {
		case string:
			ok = name == "string"
		case bool:
			ok = name == "boolean"
		case float64:
			ok = name == "number" || name == "integer" && v == float64(int64(v))
		case object:
			ok = name == "object"
		case []any:
			ok = name == "array"
		}
		if ok {
			return nil
		}
	}
	if want == nil {
		return nil
	}
	return fmt.Errorf("%s is %T, want %v", path, v, want)
}

func conformObject(d, schema, v object, path string) error {
	required, _ := schema["required"].([]any)
	for _, key := range required {
		if _, ok := v[key.(string)]; !ok {
			return fmt.Errorf("%s lacks %v", path, key)
		}
	}
	properties, _ := schema["properties"].(object)
	for key, value := range v {
		of, known := properties[key].(object)
		if !known {
			switch rest := schema["additionalProperties"].(type) {
			case object:
				of = rest
			case bool:
				return fmt.Errorf("%s has %s, which the schema doesn't", path, key)
			}
		}
		if err := conform(d, of, value, path+"."+key); err != nil {
			return err
		}
	}
	return nil
}

func TestConform(t *testing.T) {
	d := object{"components": object{"schemas": object{"N": object{"type": "integer"}}}}
	schema := object{
		"type": "object", "additionalProperties": false, "required": []any{"n"},
		"properties": object{
			"n": object{"$ref": "#/components/schemas/N"}, "list": object{"type": "array", "items": object{"type": "string"}},
			"word": object{"type": "string", "enum": []any{"a", "b"}}, "any": object{"type": "object", "additionalProperties": object{"type": "boolean"}},
			"one": object{"oneOf": []any{object{"type": "string"}, object{"type": "number"}}},
		},
	}
	for _, tt := range []struct {
		v  any
		ok bool
	}{
		{object{"n": 1.0}, true},
		{object{"n": 1.0, "list": []any{"x"}, "word": "a", "any": object{"y": true}, "one": 1.5}, true},
		{object{}, false}, {object{"n": 1.5}, false}, {object{"n": "1"}, false}, {"n", false},
		{object{"n": 1.0, "more": 1.0}, false}, {object{"n": 1.0, "list": []any{1.0}}, false},
		{object{"n": 1.0, "word": "c"}, false}, {object{"n": 1.0, "any": object{"y": 1.0}}, false}, {object{"n": 1.0, "one": true}, false},
	} {
		if err := conform(d, schema, tt.v, "it"); (err == nil) != tt.ok {
			t.Errorf("%v: %v", tt.v, err)
		}
	}
	if conform(d, object{"minimum": 1}, 2.0, "it") == nil {
		t.Error("a word that isn't known passes")
	}
}
