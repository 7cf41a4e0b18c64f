package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/study/spec"
)

// cellKey returns 12 bytes of SHA-256, in hexadecimal, of everything that the scores of a cell
// depend on; not of settings such as the batch size.
func (p *Plan) cellKey(c *Cell) string {
	sum := sha256.Sum256([]byte(p.keyText(c)))
	return hex.EncodeToString(sum[:12])
}

// keyText returns a JSON object with sorted names.
func (p *Plan) keyText(c *Cell) string {
	var layers []string
	for _, t := range c.Tasks { // each measures one layer, or pairs of layers
		layers = append(layers, t.depends()...)
	}
	if c.Procedure != nil { // a measure that works in steps has no tasks
		layers = c.Procedure.depends()
	}
	var b strings.Builder
	field := func(name, value string) { b.WriteString(`,"` + name + `":` + value) }
	field("budget", spec.CanonicalJSON(p.Study.Memory)) // decides whether an interval fits into memory
	field("data", p.encode(c.Data, func() any { return []any{c.Data.Entry.Name, c.Data.Source.Fingerprint(), c.Data.Layout} }))
	field("layers", p.encode(strconv.Itoa(len(layers))+"\x00"+strings.Join(layers, "\x00"), func() any { return layers }))
	method := func() any { return []any{c.Method.Name(), c.Method.Version(), c.Method.Settings()} }
	if reflect.ValueOf(c.Method).Comparable() {
		field("measure", p.encode(c.Method, method))
	} else {
		field("measure", spec.CanonicalJSON(method()))
	}
	model := func(m *Model) string {
		return p.encode(m, func() any { return []any{m.Entry.Name, m.canonical()} })
	}
	field("model", model(c.Model))
	if c.other != nil {
		field("other", model(c.other))
	}
	kept := spec.CanonicalJSON(p.Study.Samples)
	if !p.Study.Samples && p.Study.KeepsSamples() {
		kept = `"predictions"`
	}
	field("samples", kept)
	field("seed", spec.CanonicalJSON(p.Study.Seed))
	v := c.View // the transformation with one value of its parameter, in one trial
	values := p.encode([2]string{v.Name, v.Parameter}, func() any { return []any{v.Name, v.Parameter} })
	kind := p.encode([3]string{v.On, v.Per, string(v.canonical)}, func() any { return []any{v.On, v.Per, v.canonical} })
	// One JSON list: Name, Parameter, Trial, On, Per and canonical of the View.
	field("view", values[:len(values)-1]+","+strconv.Itoa(v.Trial)+","+kind[1:])
	return "{" + b.String()[1:] + "}"
}

// encode returns the JSON of value's result. of identifies that part of a cell and must be
// comparable; each part is encoded once, since many cells share it.
func (p *Plan) encode(of any, value func() any) string {
	text, known := p.encoded[of]
	if known {
		return text
	}
	if p.encoded == nil {
		p.encoded = map[any]string{}
	}
	p.encoded[of] = spec.CanonicalJSON(value())
	return p.encoded[of]
}
