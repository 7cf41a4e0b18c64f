package spec

import (
	"reflect"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
)

// family returns the Family of a method whose settings are the struct S. A method is a measure with
// its settings; its Family is the measure with any settings. make returns the method for given
// settings, which are read from a node of the study file.
func family[S any, M measure.Method](d measure.Descriptor, make func(S) (M, error)) Family {
	return Family{
		Name:       d.Name,
		Descriptor: d,
		decode: func(n *config.Node) (measure.Method, error) {
			var settings S
			if err := config.Decode(n, &settings); err != nil {
				return nil, err
			}
			m, err := make(settings)
			if err != nil {
				return nil, n.Errorf("%s: %w", d.Name, err)
			}
			return m, nil
		},
		schema: func() map[string]any { return config.Schema(reflect.TypeFor[S]()) },
	}
}

// withoutError adapts a constructor that cannot fail.
func withoutError[S any, M measure.Method](make func(S) M) func(S) (M, error) {
	return func(s S) (M, error) { return make(s), nil }
}

// A MeasureSpec is an entry of the list measures in a study file: `seis`, or
// `seis: {variance: 0.95}`. For measures that compare models it has the pairs of models to compare:
// `similarity: {between: [a, b], layers: same}`.
type MeasureSpec struct {
	measure.Method
	Between Between // the models to compare; not given: one model is measured
	Pairing string  // how layers of two models are paired; "": the default of the method

	node     *config.Node // position of the name in the study file
	settings *config.Node // without the keys between and layers, if the measure compares models
}

// Position returns the node of the study file with the unknown name u.Name in the setting u.Key,
// for the error about it. If the name is not found, it returns the node of the setting.
func (m MeasureSpec) Position(u *procedure.Unknown) *config.Node {
	at := m.settings
	if at == nil {
		at = &config.Node{}
	}
	for _, key := range u.Key {
		if inner := at.Get(key); inner != nil {
			at = inner
		}
	}
	for _, item := range at.Items {
		if item.Text == u.Name {
			return item
		}
	}
	for _, p := range at.Pairs {
		if p.Key.Text == u.Name {
			return p.Key
		}
	}
	return at
}

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
	m.node = key
	var names []string
	for _, f := range Families() {
		if f.Name == key.Text {
			return m.decode(f, settings)
		}
		names = append(names, f.Name)
	}
	return key.Unknown("measure", names)
}

// decode reads the settings of a family, and the keys between and layers if the family may compare
// models.
func (m *MeasureSpec) decode(f Family, settings *config.Node) error {
	use := f.pairUse()
	var err error
	if use != pairsNever {
		if settings, err = m.takePairs(settings); err != nil {
			return err
		}
	}
	m.settings = settings
	if m.Method, err = f.decode(settings); err != nil {
		return err
	}
	switch {
	case use >= pairsRequired && !m.Between.Given():
		return m.node.Errorf("%s compares two models: set {between: [a, b]}, or {between: all} for all pairs", f.Name)
	case m.Pairing != "" && use == pairsOfPredictions:
		return settings.Errorf("layers is not a setting of %s, which compares predictions", f.Name)
	case m.Pairing != "" && !m.Between.Given():
		return settings.Errorf("layers pairs the layers of two models: set between: [a, b] too")
	}
	return nil
}

// takePairs reads the keys between and layers, and returns the settings without them.
func (m *MeasureSpec) takePairs(settings *config.Node) (*config.Node, error) {
	rest := *settings
	rest.Pairs = nil
	for _, p := range settings.Pairs {
		var err error
		switch p.Key.Text {
		case "between":
			err = m.Between.DecodeNode(p.Value)
		case "layers":
			m.Pairing, err = decodePairing(p.Value)
		default:
			rest.Pairs = append(rest.Pairs, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return &rest, nil
}

// JSONSchema implements config.Schemer.
func (MeasureSpec) JSONSchema() map[string]any {
	var names []string // names that may be written without settings
	settings := map[string]any{}
	for _, f := range Families() {
		s := f.schema()
		s["description"] = f.Descriptor.Question
		use := f.pairUse()
		if use < pairsRequired {
			names = append(names, f.Name)
		}
		if use != pairsNever {
			addPairs(s, use)
		}
		settings[f.Name] = s
	}
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": names},
		map[string]any{"type": "object", "properties": settings, "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
	}}
}

// A pairUse tells whether the entry of a method may name pairs of models with the key between. For
// pairsRequired and the values after it, the entry must.
type pairUse int

const (
	pairsNever pairUse = iota
	pairsOptional
	pairsRequired
	pairsOfPredictions // required; no layers are paired
)

// pairUse tells whether an entry of the family may, or must, name pairs of models.
func (f Family) pairUse() pairUse {
	method, err := f.decode(&config.Node{})
	if err != nil {
		return pairsNever // the method has required settings; none that compares models has
	}
	switch m := method.(type) {
	case measure.Comparison: // of two layers, of one model or of two
		return pairsOptional
	case measure.Measure: // of one layer, or of predictions
		if m.Needs().OtherModel {
			return pairsOfPredictions
		}
	case procedure.Procedure: // works in steps on samples in memory
		if m.Needs().Pair {
			return pairsRequired
		}
	}
	return pairsNever
}

// Errorf returns an error at the measure's name in the study file.
func (m MeasureSpec) Errorf(format string, args ...any) error { return m.node.Errorf(format, args...) }
