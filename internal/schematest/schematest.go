// Package schematest validates JSON in tests by JSON Schemas.
package schematest

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Compile returns a schema. It checks formats such as date-time, too.
func Compile(t testing.TB, schema []byte) *jsonschema.Schema {
	t.Helper()
	const name = "schema.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, Value(t, schema)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Value returns the value of a JSON file, as Validate of a schema takes it.
func Value(t testing.TB, file []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
