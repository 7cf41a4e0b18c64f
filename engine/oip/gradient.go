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

// gradientPrefix begins the names of the outputs of a model of gradients, which end in that of an
// input.
const gradientPrefix = "gradient "

// findGradients reads the metadata of the model NAME.vjp, if the server has it. Its inputs are
// those of the model NAME and engine.CotangentInput of each of its outputs and layers; its outputs
// are those of NAME and, for each input, the gradient of the sum of the products of outputs and
// their cotangents. A request names the cotangents that are not 0.
func (n *Network) findGradients(ctx context.Context) error {
	var m modelMetadata
	err := n.client.get(ctx, n.client.model+".vjp", &m)
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		n.noVJP = "is of a server without gradients: it would have to serve them as a second model, with .vjp at the end of the name"
		if refused.status != http.StatusNotFound && refused.status != http.StatusBadRequest {
			n.noVJP = fmt.Sprintf("has no gradients: %v", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(m.Outputs, func(o wireTensor) bool { return strings.HasPrefix(o.Name, gradientPrefix) }) {
		n.noVJP = "has no gradients: the server's model with .vjp at the end of the name has no output whose name begins with " + strconv.Quote(gradientPrefix)
		return nil
	}
	gradients := *n.client
	gradients.model += ".vjp"
	n.vjp = &Network{client: &gradients, requests: n.requests, types: map[string]string{}}
	n.vjp.metadata.Name = n.metadata.Name + ".vjp"
	for _, t := range m.Inputs {
		n.vjp.types[t.Name] = t.Datatype
		n.vjp.metadata.Inputs = append(n.vjp.metadata.Inputs, t.port())
	}
	return nil
}

// NoVJP implements engine.Differentiable.
func (n *Network) NoVJP() string { return n.noVJP }

// OpenVJP implements engine.Differentiable.
func (n *Network) OpenVJP(ctx context.Context, r engine.Request, by ...string) (engine.Session, error) {
	if n.vjp == nil {
		return nil, fmt.Errorf("the model %s", cmp.Or(n.noVJP, "has no gradients"))
	}
	v := &Network{client: n.vjp.client, requests: n.requests, types: n.vjp.types}
	v.metadata.Name = n.vjp.metadata.Name
	v.asBytes.Store(true)
	v.shares.Store(n.shares.Load())
	v.largest.Store(n.largest.Load())
	names := make([]string, len(n.metadata.Inputs), len(n.metadata.Inputs)+len(r.Outputs))
	for i, p := range n.metadata.Inputs {
		names[i] = p.Name
	}
	if len(by) > 0 {
		for _, o := range r.Outputs {
			names = append(names, engine.CotangentInput(o.Name))
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(n.vjp.metadata.Inputs, func(p engine.Port) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("model %s has no input %q", v.metadata.Name, name)
		}
		v.metadata.Inputs = append(v.metadata.Inputs, n.vjp.metadata.Inputs[i])
	}
	outputs := slices.Clip(r.Outputs)
	for _, name := range by {
		i := slices.IndexFunc(n.metadata.Inputs, func(p engine.Port) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("model %s has no input %q", n.metadata.Name, name)
		}
		outputs = append(outputs, engine.Output{Name: gradientPrefix + name, Shape: n.metadata.Inputs[i].Sizes()[1:], Convert: true})
	}
	return v.Open(ctx, engine.Request{Outputs: outputs})
}
