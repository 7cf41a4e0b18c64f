package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// minShared is the smallest length, in bytes of JSON, of a repeated schema that gets a definition.
const minShared = 80

// maxLine is the largest length of a line, in bytes, that holds a whole value.
const maxLine = 120

// EncodeSchema returns a JSON Schema as text, with repeated schemas defined once under $defs. A
// definition is named by the title of the schema, or by the key where the schema first occurs.
// Titles of schemas within the given one are otherwise left out.
func EncodeSchema(schema map[string]any) ([]byte, error) {
	s := &sharer{count: map[string]int{}, names: map[string]string{}, defs: map[string]any{}}
	s.visit(schema)
	out := s.children(schema, "")
	if len(s.defs) > 0 {
		out["$defs"] = s.defs
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return []byte(layOut(raw, "")), nil
}

// layOut breaks JSON into lines. A value that fits is written on one line.
func layOut(raw json.RawMessage, indent string) string {
	if len(raw)+len(indent) <= maxLine || raw[0] != '{' && raw[0] != '[' {
		return string(raw)
	}
	inner := indent + " "
	var parts []string
	if raw[0] == '[' {
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			panic(err) // raw is from json.Marshal
		}
		for _, item := range items {
			parts = append(parts, layOut(item, inner))
		}
	} else {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			panic(err)
		}
		for _, k := range slices.Sorted(maps.Keys(members)) {
			parts = append(parts, strconv.Quote(k)+": "+layOut(members[k], inner))
		}
	}
	last := len(raw) - 1
	return string(raw[0]) + "\n" + inner + strings.Join(parts, ",\n"+inner) + "\n" + indent + string(raw[last])
}

// A sharer finds repeated schemas and replaces them by references to a definition.
type sharer struct {
	count map[string]int    // number of occurrences of a schema, by textOf
	names map[string]string // names of definitions, by textOf
	defs  map[string]any    // definitions by name
}

// textOf returns the text that identifies equal schemas. Their own descriptions and titles may
// differ.
func textOf(schema map[string]any) string {
	raw, err := json.Marshal(without(schema, "description", "title"))
	if err != nil {
		panic(err) // schemas are plain values
	}
	return string(raw)
}

func without(schema map[string]any, keys ...string) map[string]any {
	out := maps.Clone(schema)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

func (s *sharer) visit(schema map[string]any) {
	text := textOf(schema)
	if s.count[text]++; s.count[text] == 1 {
		mapChildren(schema, "", func(child map[string]any, _ string) any { s.visit(child); return child })
	}
}

// rewrite returns a reference to a repeated schema, or the schema with references within it.
func (s *sharer) rewrite(schema map[string]any, key string) any {
	text := textOf(schema)
	if s.count[text] < 2 || len(text) < minShared {
		return s.children(without(schema, "title"), key)
	}
	name, ok := s.names[text]
	if !ok {
		if title, ok := schema["title"].(string); ok {
			key = title
		}
		name = key
		for n := 2; s.defs[name] != nil; n++ {
			name = fmt.Sprintf("%s-%d", key, n)
		}
		s.names[text], s.defs[name] = name, true // reserve the name before the schemas within it
		s.defs[name] = s.children(without(schema, "description", "title"), name)
	}
	out := map[string]any{"$ref": "#/$defs/" + name}
	if about, ok := schema["description"]; ok {
		out["description"] = about
	}
	return out
}

func (s *sharer) children(schema map[string]any, key string) map[string]any {
	return mapChildren(schema, key, s.rewrite)
}

// mapChildren returns a schema with f applied to its direct children. key is the key at which the
// schema occurs; f gets the key of the child.
func mapChildren(schema map[string]any, key string, f func(child map[string]any, key string) any) map[string]any {
	out := map[string]any{}
	// Sorted, since the first occurrence of a schema names its definition.
	for _, k := range slices.Sorted(maps.Keys(schema)) {
		switch v := schema[k].(type) {
		case map[string]any:
			switch k {
			case "properties":
				properties := map[string]any{}
				for _, name := range slices.Sorted(maps.Keys(v)) {
					properties[name] = f(v[name].(map[string]any), name)
				}
				out[k] = properties
				continue
			case "items", "additionalProperties":
				out[k] = f(v, key)
				continue
			}
		case []any:
			if k == "anyOf" {
				forms := make([]any, len(v))
				for i, form := range v {
					forms[i] = f(form.(map[string]any), key)
				}
				out[k] = forms
				continue
			}
		}
		out[k] = schema[k]
	}
	return out
}
