package study

import (
	"reflect"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
)

// family describes a measure whose settings are the struct S.
func family[S any, M measure.Measure](name, doc string, make func(S) (M, error)) Family {
	return Family{
		Name: name,
		Doc:  doc,
		decode: func(n *config.Node) (measure.Measure, error) {
			var settings S
			if err := config.Decode(n, &settings); err != nil {
				return nil, err
			}
			m, err := make(settings)
			if err != nil {
				return nil, n.Errorf("%s: %v", name, err)
			}
			return m, nil
		},
		schema: func() map[string]any { return config.Schema(reflect.TypeFor[S]()) },
	}
}

// plain is for measures that accept every setting that their tags allow.
func plain[S any](make func(S) measure.Measure) func(S) (measure.Measure, error) {
	return func(s S) (measure.Measure, error) { return make(s), nil }
}

// A MeasureSpec is an entry of measures: `seis`, or `seis: {variance: 0.95}`.
type MeasureSpec struct{ measure.Measure }

// DecodeNode implements config.Decoder.
func (m *MeasureSpec) DecodeNode(n *config.Node) error {
	key, settings := n, &config.Node{}
	if n.Kind == config.Map {
		if len(n.Pairs) != 1 {
			return n.Errorf("an entry of measures is a name, or one name with its settings; this has %d keys", len(n.Pairs))
		}
		key, settings = n.Pairs[0].Key, n.Pairs[0].Value
	} else if n.Kind != config.String {
		return n.Errorf("an entry of measures is a name, or a name with settings, not %s", n.Kind)
	}
	var names []string
	for _, f := range Families() {
		if f.Name == key.Text {
			var err error
			m.Measure, err = f.decode(settings)
			return err
		}
		names = append(names, f.Name)
	}
	return key.Unknown("measure", names)
}

// JSONSchema implements config.Schemer.
func (MeasureSpec) JSONSchema() map[string]any {
	names, settings := []string{}, map[string]any{}
	for _, f := range Families() {
		names = append(names, f.Name)
		s := f.schema()
		s["description"] = f.Doc
		settings[f.Name] = s
	}
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": names},
		map[string]any{"type": "object", "properties": settings, "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
	}}
}
