package spec

import (
	"reflect"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
)

// A Family is a measure that a study file can name, with settings still to be given.
type Family struct {
	Descriptor measure.Descriptor
	// Pairs returns how a method of the family compares models.
	Pairs func(measure.Method) Pairs

	decode func(settings *config.Node) (measure.Method, error) // an empty node gives the defaults
	schema func() map[string]any
}

// Pairs is how a method compares models.
type Pairs struct {
	Use         PairUse
	Directional bool   // comparing a with b differs from comparing b with a
	Layers      string // how layers of two models are paired by default
}

// A PairUse tells whether an entry of measures may name pairs of models with the key between. For
// PairsRequired and the values after it, the entry must.
type PairUse int

// The uses of pairs.
const (
	PairsNever PairUse = iota
	PairsOptional
	PairsRequired
	PairsOfPredictions // required; no layers are paired
)

// NewFamily returns the Family of a measure whose settings are the struct S, with the tags of
// package config. create returns the method for given settings.
func NewFamily[S any, M measure.Method](d measure.Descriptor, create func(S) (M, error), pairs func(measure.Method) Pairs) Family {
	return Family{
		Descriptor: d,
		Pairs:      pairs,
		decode: func(n *config.Node) (measure.Method, error) {
			var settings S
			if err := config.Decode(n, &settings); err != nil {
				return nil, err
			}
			m, err := create(settings)
			if err != nil {
				return nil, n.Errorf("%s: %w", d.Name, err)
			}
			return m, nil
		},
		schema: func() map[string]any { return config.Schema(reflect.TypeFor[S]()) },
	}
}

// Default returns the method with the default settings. It is an error if a setting is required.
func (f Family) Default() (measure.Method, error) { return f.decode(&config.Node{}) }

func (f Family) pairUse() PairUse {
	method, err := f.Default()
	if err != nil {
		return PairsNever // the method has required settings; none that compares models has
	}
	return f.Pairs(method).Use
}

// A MeasureSpec is an entry of the list measures in a study file: `seis`, or
// `seis: {variance: 0.95}`. For measures that compare models it has the pairs of models to compare:
// `similarity: {between: [a, b], layers: same}`.
type MeasureSpec struct {
	measure.Method
	Pairs   Pairs   // how the method compares models
	Between Between // the models to compare; not given: one model is measured
	pairing string  // how layers of two models are paired; "": the default of the method

	entry    *config.Node // the entry in the file
	node     *config.Node // position of the name in the study file
	settings *config.Node // without the keys between and layers, if the measure compares models
}

// Position returns the node of the name that a setting, given by its path, has, for an error about
// it. If the name is not found, it returns the node of the setting.
func (m MeasureSpec) Position(setting []string, name string) *config.Node {
	at := m.settings
	if at == nil {
		at = &config.Node{}
	}
	for _, key := range setting {
		if inner := at.Get(key); inner != nil {
			at = inner
		}
	}
	for _, item := range at.Items {
		if item.Text == name {
			return item
		}
	}
	for _, p := range at.Pairs {
		if p.Key.Text == name {
			return p.Key
		}
	}
	return at
}

// DecodeNode implements config.Decoder. Decode reads the entry once the measures are known.
func (m *MeasureSpec) DecodeNode(n *config.Node) error {
	m.entry = n
	return nil
}

// Decode reads the entry, which is of one of the families.
func (m *MeasureSpec) Decode(families []Family) error {
	n := m.entry
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
	for _, f := range families {
		if f.Descriptor.Name == key.Text {
			return m.decodeSettings(f, settings)
		}
		names = append(names, f.Descriptor.Name)
	}
	return key.Unknown("measure", names)
}

// decodeSettings reads the settings of a family, and the keys between and layers if it may compare
// models.
func (m *MeasureSpec) decodeSettings(f Family, settings *config.Node) error {
	use, name := f.pairUse(), f.Descriptor.Name
	var err error
	if use != PairsNever {
		if settings, err = m.takePairs(settings); err != nil {
			return err
		}
	}
	m.settings = settings
	if m.Method, err = f.decode(settings); err != nil {
		return err
	}
	m.Pairs = f.Pairs(m.Method)
	switch {
	case use >= PairsRequired && !m.Between.Given():
		return m.node.Errorf("%s compares two models: set {between: [a, b]}, or {between: all} for all pairs", name)
	case m.pairing != "" && use == PairsOfPredictions:
		return settings.Errorf("layers is not a setting of %s, which compares predictions", name)
	case m.pairing != "" && !m.Between.Given():
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
			m.pairing, err = decodePairing(p.Value)
		default:
			rest.Pairs = append(rest.Pairs, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return &rest, nil
}

// JSONSchema implements config.Schemer. Schema replaces it, which knows the measures.
func (MeasureSpec) JSONSchema() map[string]any { return map[string]any{} }

func measuresSchema(families []Family) map[string]any {
	var names []string // names that may be written without settings
	settings := map[string]any{}
	for _, f := range families {
		s := f.schema()
		s["description"] = f.Descriptor.Question
		use := f.pairUse()
		if use < PairsRequired {
			names = append(names, f.Descriptor.Name)
		}
		if use != PairsNever {
			addPairs(s, use)
		}
		settings[f.Descriptor.Name] = s
	}
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": names},
		map[string]any{"type": "object", "properties": settings, "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
	}}
}

// Errorf returns an error at the measure's name in the study file.
func (m MeasureSpec) Errorf(format string, args ...any) error { return m.node.Errorf(format, args...) }
