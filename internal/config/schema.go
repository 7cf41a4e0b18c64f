package config

import (
	"fmt"
	"reflect"
	"strconv"
)

// A Schemer is a type that returns its own JSON Schema. It is usually a Decoder, a type that
// decodes itself from YAML.
type Schemer interface {
	JSONSchema() map[string]any
}

// Schema returns the JSON Schema (2020-12) of a type. Scalars may also be variables, ${NAME}, which
// Parse replaces. It panics for types that Decode does not support.
func Schema(t reflect.Type) map[string]any {
	if s, ok := reflect.New(t).Interface().(Schemer); ok {
		return s.JSONSchema()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return Schema(t.Elem())
	case reflect.Bool:
		return orVariable("boolean")
	case reflect.Int, reflect.Int64:
		return orVariable("integer")
	case reflect.Uint64:
		n := orVariable("integer")
		n["minimum"] = 0
		return n
	case reflect.Float64, reflect.Float32:
		return orVariable("number")
	case reflect.String:
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	case reflect.Slice:
		return listSchema(t)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": Schema(t.Elem())}
	case reflect.Struct:
		return structSchema(t)
	}
	panic(fmt.Sprintf("config: type %s has no schema", t))
}

// listSchema returns the schema of a list. It accepts a single value for a list of one, as Decode
// does.
func listSchema(t reflect.Type) map[string]any {
	item := Schema(t.Elem())
	list := map[string]any{"type": "array", "items": item}
	if t.Elem().Kind() == reflect.Map || t.Elem().Kind() == reflect.Slice {
		return list
	}
	return map[string]any{"anyOf": []any{list, item}}
}

// structSchema returns the schema of a struct. A field whose tag short is set may stand for the
// whole struct.
func structSchema(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(t) {
		properties[f.key] = f.schema()
		if f.required {
			required = append(required, f.key)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	} else {
		out["type"] = []string{"object", "null"}
	}
	for _, f := range fieldsOf(t) {
		if f.short {
			return map[string]any{"anyOf": []any{f.schema(), out}}
		}
	}
	return out
}

func (f field) schema() map[string]any {
	s := Schema(f.typ)
	if f.enum != nil {
		s = Words(f.enum)
	}
	if f.doc != "" {
		s["description"] = f.doc
	}
	if lo, err := strconv.ParseFloat(f.min, 64); err == nil {
		s["minimum"] = lo
		delete(s, "title") // the title names the shared schema without bounds, see EncodeSchema
	}
	if hi, err := strconv.ParseFloat(f.max, 64); err == nil {
		s["maximum"] = hi
		delete(s, "title")
	}
	return s
}

// Words returns the schema of a text that is one of several words or a variable, ${NAME}.
func Words(words []string) map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": words},
		map[string]any{"title": "variable", "type": "string", "pattern": oneVariablePattern.String()},
	}}
}

// orVariable returns the schema of a scalar of a JSON type, or of a variable, ${NAME}.
func orVariable(kind string) map[string]any {
	return map[string]any{"title": kind, "type": []string{kind, "string"}, "pattern": oneVariablePattern.String()}
}
