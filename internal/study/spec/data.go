package spec

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
)

// A DataKind is a kind of source of samples, such as cifar10, that an entry of data can name.
type DataKind struct {
	Name string // its key
	Doc  string
	Keys reflect.Type // the struct of the keys below it, with the tags of package config
}

// Data is an entry of data: a name, one kind of source, and the selection of samples.
type Data struct {
	Name string `key:"name,required" doc:"name in the scores, and part of the random seed of these data"`

	Join *Join `key:"join" doc:"several data entries joined in order, each with a name: {train: {...}, test: {...}}; the factor part identifies them"`

	Where       map[string]FactorValues `key:"where" doc:"only samples whose factors (or label) have these values: {duration: [0, 4], speaker: {values: [theo, lucas]}}; [low, high] is a range"`
	Factors     []string                `key:"factors" doc:"factors that are computed from the samples: hue, saturation, value (means over the pixels; hue 0 to 179, the others 0 to 255, as in OpenCV), level (of audio: its root mean square in dB relative to 1, dBFS)"`
	Corrupt     *Corruption             `key:"corrupt" doc:"corrupts the samples as in ImageNet-C and CIFAR-10-C; transformations are applied to the corrupted samples"`
	Benchmark   *Benchmark              `key:"benchmark" doc:"a published benchmark, such as imagenet-c, in place of a kind of data: each of its data sets becomes an entry; noether benchmark prints its numbers"`
	Split       *Split                  `key:"split" doc:"a part of the samples, selected at random and stratified by label"`
	Shuffle     bool                    `key:"shuffle" doc:"shuffle before the limit is applied; the seed of the study determines the order"`
	Limit       int                     `key:"limit" min:"1" doc:"use only the first N samples"`
	Stratified  bool                    `key:"stratified" doc:"the limit draws from each class in its proportion"`
	Classes     []string                `key:"classes" doc:"the model's output for each class of the data, in order: an index, the model's name of it, or an ImageNet synset (a WordNet ID such as n01440764); or present, if the classes of the data are synsets. The other outputs are removed before the softmax"`
	SHA256      string                  `key:"sha256" doc:"SHA-256 of the data file, if the entry is a single file; a different hash is an error"`
	Fingerprint string                  `key:"fingerprint" doc:"hash of the samples; a different hash is an error. A run writes it into the resolved study"`

	// Source points to the keys of the kind of source, of type DataKind.Keys. It is nil for joined
	// data.
	Source any
	kind   string       // the key of the source
	node   *config.Node // the entry in the file
}

// DecodeNode implements config.Decoder. Decode reads the entry once the kinds are known.
func (d *Data) DecodeNode(n *config.Node) error {
	d.node = n
	return nil
}

// Decode reads the entry, which is one of the kinds.
func (d *Data) Decode(kinds []DataKind) error { return d.decode(d.node, kinds) }

// decode reads the entry from a node, which has its name.
func (d *Data) decode(n *config.Node, kinds []DataKind) error {
	type plain Data // without DecodeNode
	if n.Kind != config.Map {
		return config.Decode(n, (*plain)(d))
	}
	known := config.Keys(reflect.TypeFor[plain]())
	rest := *n
	rest.Pairs = nil
	var sources []config.Pair
	for _, p := range n.Pairs {
		isKind := slices.ContainsFunc(kinds, func(k DataKind) bool { return k.Name == p.Key.Text })
		if isKind || p.Key.Text == "join" {
			sources = append(sources, p)
		}
		if !isKind {
			rest.Pairs = append(rest.Pairs, p)
		}
		if !isKind && !slices.Contains(known, p.Key.Text) {
			for _, k := range slices.Backward(kinds) {
				known = slices.Insert(known, 1, k.Name) // after name
			}
			return p.Key.Unknown("key", known)
		}
	}
	if err := config.Decode(&rest, (*plain)(d)); err != nil {
		return err
	}
	if err := d.setSource(sources, kinds); err != nil {
		return err
	}
	return d.check()
}

// setSource reads the one kind of source that the entry names.
func (d *Data) setSource(sources []config.Pair, kinds []DataKind) error {
	var names []string
	for _, p := range sources {
		names = append(names, p.Key.Text)
	}
	if len(sources) != 1 {
		return d.node.Errorf("an entry of data names one kind of source, such as cifar10 or images; this entry names %s",
			cmp.Or(strings.Join(names, " and "), "none"))
	}
	d.kind = names[0]
	if d.Join != nil {
		return d.Join.decode(kinds)
	}
	kind := kinds[slices.IndexFunc(kinds, func(k DataKind) bool { return k.Name == d.kind })]
	keys := reflect.New(kind.Keys)
	d.Source = keys.Interface()
	return config.Decode(sources[0].Value, d.Source)
}

// FactorValues are the accepted values of a factor: one value, a range [low, high], or {values:
// [...]}.
type FactorValues struct{ dataset.Condition }

// DecodeNode implements config.Decoder.
func (w *FactorValues) DecodeNode(n *config.Node) error {
	if n.Kind == config.Map && len(n.Pairs) == 1 {
		key, value := n.Pairs[0].Key, n.Pairs[0].Value
		switch {
		case key.Text == "range":
			return w.DecodeNode(value)
		case key.Text != "values":
			return key.Unknown("key", []string{"values", "range"})
		case value.Kind != config.List || len(value.Items) == 0:
			return value.Errorf("values is a list, such as [0, 1, 2]")
		}
		for _, item := range value.Items {
			text, err := item.Scalar()
			if err != nil {
				return err
			}
			w.Values = append(w.Values, text)
		}
		return nil
	}
	if n.Kind == config.List {
		limits, err := decodeRange(n)
		w.Low, w.High = limits.Low, limits.High
		if err == nil && limits.Low > limits.High {
			err = n.Errorf("the range %v has its ends exchanged", limits)
		}
		return err
	}
	text, err := n.Scalar()
	w.Values = []string{text}
	return err
}

// JSONSchema implements config.Schemer.
func (FactorValues) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": []string{"number", "string"}}, rangeOfNumbers,
		map[string]any{"type": "object", "properties": map[string]any{"values": listOfValues, "range": rangeOfNumbers}, "additionalProperties": false, "minProperties": 1, "maxProperties": 1},
	}}
}

// Split selects a part of the samples at random.
type Split struct {
	Part     int     `key:"part" min:"1" doc:"number of the part, from 1"`
	Of       int     `key:"of" min:"2" doc:"number of equal, disjoint parts"`
	Fraction float64 `key:"fraction" min:"0" max:"1" doc:"fraction of the samples, instead of part and of"`
	Seed     uint64  `key:"seed" default:"1" doc:"seed of the shuffle; parts of the same seed do not overlap"`
}

func (d Data) check() error {
	if d.Stratified && d.Limit == 0 {
		return d.node.Get("stratified").Errorf("stratified needs a limit")
	}
	if d.Corrupt != nil && d.ReadyPairs() {
		return d.node.Get("corrupt").Errorf("ready-made pairs cannot be corrupted: clean and transformed samples would no longer match")
	}
	if k := d.Split; k != nil {
		split := d.node.Get("split")
		parts, fraction := k.Part > 0 || k.Of > 0, k.Fraction > 0
		switch {
		case parts == fraction:
			return split.Errorf("a split is {part: 1, of: 5}, or {fraction: 0.2}")
		case parts && (k.Part == 0 || k.Of == 0 || k.Part > k.Of):
			return split.Errorf("part %d of %d does not exist: write {part: 1, of: 5}, for instance", k.Part, k.Of)
		}
	}
	return nil
}

// SetFingerprint writes the fingerprint of the samples into the study.
func (d Data) SetFingerprint(fingerprint string) { d.node.Set("fingerprint", fingerprint) }

// Kind returns the key of the source that the entry names, such as cifar10.
func (d Data) Kind() string { return d.kind }

// ReadyPairs reports whether the samples come in pairs with transformed versions.
func (d Data) ReadyPairs() bool { return d.kind == "pairs" }

// At returns the node of the file at a path of keys of the entry, or the innermost node around it
// that exists.
func (d Data) At(path ...string) *config.Node { return d.node.Find(path...) }
