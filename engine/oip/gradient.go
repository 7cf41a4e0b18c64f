package oip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/engine"
)

// A derivative is a model of a server that computes derivatives of another model.
type derivative struct {
	*Network        // nil: the server has none
	why      string // it has none
}

// The models of derivatives of a model NAME have the names NAME.vjp and NAME.jvp. Their inputs are
// those of NAME and vectors, engine.CotangentInput and engine.TangentInput, of which a request names
// those that are not 0. Their outputs are those of NAME, and others whose names begin with
// gradientPrefix or engine.TangentInput: see engine.Differentiable and engine.ForwardDifferentiable.
const (
	gradientPrefix = "gradient "
	tangentPrefix  = "tangent "
)

// findDerivative reads the metadata of the model NAME with an ending, if the server has it. what are
// its outputs, whose names begin with prefix.
func (n *Network) findDerivative(ctx context.Context, end, what, prefix string) (d derivative, err error) {
	var m modelMetadata
	name, version, versioned := strings.Cut(n.client.model, "/versions/")
	path := name + end
	if versioned {
		path += "/versions/" + version
	}
	err = n.client.get(ctx, path, &m)
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		d.why = fmt.Sprintf("is of a server without %s: it would have to serve them as a second model, with %s at the end of the name", what, end)
		if refused.status != http.StatusNotFound && refused.status != http.StatusBadRequest {
			d.why = fmt.Sprintf("has no %s: %v", what, err)
		}
		return d, nil
	}
	if err != nil {
		return d, err
	}
	if !slices.ContainsFunc(m.Outputs, func(o wireTensor) bool { return strings.HasPrefix(o.Name, prefix) }) {
		d.why = fmt.Sprintf("has no %s: the server's model with %s at the end of the name has no output whose name begins with %s", what, end, strconv.Quote(prefix))
		return d, nil
	}
	c := *n.client
	c.model = path
	d.Network = &Network{client: &c, requests: n.requests, types: map[string]string{}}
	d.metadata.Name = n.metadata.Name + end
	for _, t := range m.Inputs {
		d.types[t.Name] = t.Datatype
		d.metadata.Inputs = append(d.metadata.Inputs, t.port())
	}
	return d, nil
}

func (n *Network) findDerivatives(ctx context.Context) (err error) {
	if n.vjp, err = n.findDerivative(ctx, ".vjp", "gradients", gradientPrefix); err == nil {
		n.jvp, err = n.findDerivative(ctx, ".jvp", "tangents", tangentPrefix)
	}
	return err
}

// open returns a session that computes outputs from the inputs of the model and vectors.
func (d derivative) open(of *Network, vectors []string, outputs []engine.Output) (engine.Session, error) {
	if d.Network == nil {
		return nil, fmt.Errorf("the model %s", cmp.Or(d.why, "has no derivatives"))
	}
	v := &Network{client: d.client, requests: d.requests, types: d.types}
	v.metadata.Name = d.metadata.Name
	v.asBytes.Store(true)
	v.shares.Store(of.shares.Load())
	v.largest.Store(of.largest.Load())
	var names []string
	for _, p := range of.metadata.Inputs {
		names = append(names, p.Name)
	}
	for _, name := range append(names, vectors...) {
		i := slices.IndexFunc(d.metadata.Inputs, func(p engine.Port) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("model %s has no input %q", v.metadata.Name, name)
		}
		v.metadata.Inputs = append(v.metadata.Inputs, d.metadata.Inputs[i])
	}
	return v.open(engine.Request{Outputs: outputs})
}

// NoVJP implements engine.Differentiable.
func (n *Network) NoVJP() string { return n.vjp.why }

// OpenVJP implements engine.Differentiable.
func (n *Network) OpenVJP(_ context.Context, r engine.Request, by ...string) (engine.Session, error) {
	var cotangents []string
	if len(by) > 0 {
		for _, o := range r.Outputs {
			cotangents = append(cotangents, engine.CotangentInput(o.Name))
		}
	}
	outputs := slices.Clip(r.Outputs)
	for _, name := range by {
		i := slices.IndexFunc(n.metadata.Inputs, func(p engine.Port) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("model %s has no input %q", n.metadata.Name, name)
		}
		outputs = append(outputs, engine.Output{Name: gradientPrefix + name, Shape: n.metadata.Inputs[i].Sizes()[1:], Convert: true})
	}
	return n.vjp.open(n, cotangents, outputs)
}

// NoJVP implements engine.ForwardDifferentiable.
func (n *Network) NoJVP() string { return n.jvp.why }

// OpenJVP implements engine.ForwardDifferentiable.
func (n *Network) OpenJVP(_ context.Context, r engine.Request, given ...string) (engine.Session, error) {
	var tangents []string
	for _, name := range given {
		tangents = append(tangents, engine.TangentInput(name))
	}
	outputs := slices.Clip(r.Outputs)
	for _, o := range r.Outputs {
		o.Name = tangentPrefix + o.Name
		outputs = append(outputs, o)
	}
	return n.jvp.open(n, tangents, outputs)
}
