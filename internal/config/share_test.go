package config

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestEncodeSchemaDefinesWhatRepeats checks that a part of a JSON schema that is repeated, and has
// minShared bytes or more, is defined once and descriptions stay in place.
func TestEncodeSchemaDefinesWhatRepeats(t *testing.T) {
	t.Parallel()
	// long returns a schema that is long enough to get a definition, with a description.
	long := func(about string) map[string]any {
		return map[string]any{"type": "string", "description": about, "pattern": strings.Repeat("x", minShared)}
	}
	list := map[string]any{"type": "array", "items": long("one")}
	raw, err := EncodeSchema(map[string]any{"type": "object", "properties": map[string]any{
		"a": map[string]any{"anyOf": []any{list, long("one")}}, "b": long("other"), "c": map[string]any{"type": "number"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), strings.Repeat("x", minShared)); n != 1 {
		t.Errorf("the schema occurs %d times, want 1:\n%s", n, raw)
	}
	var schema struct {
		Properties map[string]map[string]any
		Defs       map[string]map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	// The definition is named by the key where the schema first occurs, a.
	if b := schema.Properties["b"]; b["$ref"] != "#/$defs/a" || b["description"] != "other" {
		t.Errorf("the property is %v, want a reference to a with a description of its own", b)
	}
	if len(schema.Defs) != 1 || schema.Defs["a"]["type"] != "string" {
		t.Errorf("the definitions are %v, want the string a alone", schema.Defs)
	}
}
