package oip

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/measure"
)

// Noether's worker for Python has an extension of the protocol: parameters of the outputs of a
// request. With "layer", the output is computed from this layer:
//
//	"pool": {"kind", "axes", "from"}  by pooling its positions
//	"keep": ID                        it stays with the server, and is no output
//	"reduction": {"clean", ...}       by sums over it and the layer that is kept as "clean"
//
// Its metadata have the parameters pools, and keeps where activations are in a memory of their own.

// wireName returns the name of an output in requests.
func wireName(o *engine.Output) string {
	switch {
	case o.Keep:
		return o.Name + " kept"
	case o.Pool != nil:
		return o.Name + " pooled by " + o.Pool.Kind
	}
	return o.Name
}

func parametersOf(o *engine.Output) map[string]any {
	switch {
	case o.Keep:
		return map[string]any{"layer": o.Name}
	case o.Pool != nil:
		return map[string]any{"layer": o.Name, "pool": poolParameters(o.Pool)}
	}
	return nil
}

func poolParameters(p *engine.Pool) map[string]any {
	return map[string]any{"kind": p.Kind, "axes": append([]int{}, p.Axes...), "from": p.From}
}

// A kept is an array on the server.
type kept struct {
	network *Network
	id      string
}

var keptNumber atomic.Int64

func newKept(n *Network) *kept {
	return &kept{n, fmt.Sprintf("%d-%d", os.Getpid(), keptNumber.Add(1))}
}

// Close frees the array. A server that does not answer keeps it.
func (k *kept) Close() error {
	c := k.network.client
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if c.gone() == nil {
		_, _ = c.try(ctx, http.MethodPost, c.model+"/kept/"+k.id+"/unregister", []byte("{}"), 0, 1<<20)
	}
	return nil
}

// parametersFor returns the parameters of output k in the request of a batch.
func (s *session) parametersFor(b engine.Batch, k int) map[string]any {
	switch reduction, ok := s.parameters[k]["reduction"].(map[string]any); {
	case ok:
		layer := slices.Index(s.clean, reduction["clean"].(string))
		clean := b.Inputs[len(s.network.metadata.Inputs)+layer].Bound.(*kept)
		return with(s.parameters[k], map[string]any{"reduction": with(reduction, map[string]any{"clean": clean.id})})
	case s.outputs[k].Keep:
		return with(s.parameters[k], map[string]any{"keep": b.Outputs[k].Bound.(*kept).id})
	}
	return s.parameters[k]
}

// reductionInputs returns the inputs that follow those of the network.
func (s *session) reductionInputs() []string {
	var names []string
	for _, layer := range s.clean {
		names = append(names, engine.CleanInput(layer))
	}
	if len(s.clean) > 0 {
		names = append(names, engine.PartnersInput)
	}
	return names
}

// reduce adds reductions to the outputs of a session.
func (s *session) reduce(reductions []engine.Reduction) error {
	if len(reductions) == 0 {
		return nil
	}
	if !s.network.keeps {
		return errors.New("the server computes no sums of activations")
	}
	s.whole = true
	for i, r := range reductions {
		if !slices.Contains(s.clean, r.Layer.Name) {
			s.clean = append(s.clean, r.Layer.Name)
		}
		var sums []map[string]any
		for _, v := range r.Values.Sums {
			sums = append(sums, map[string]any{"of": operands[v.Of], "absolute": v.Absolute, "directions": v.Directions})
		}
		reduction := map[string]any{"clean": r.Layer.Name, "sums": sums}
		if r.Values.Means {
			reduction["pool"] = poolParameters(&engine.Pool{Kind: string(pooling.Mean), Axes: pooling.Mean.Axes(r.Layer)})
		}
		s.outputs = append(s.outputs[:len(s.outputs):len(s.outputs)], engine.Output{Name: "reduction " + strconv.Itoa(i), Shape: []int{r.Values.Width}})
		s.names = append(s.names, "reduction "+strconv.Itoa(i))
		s.parameters = append(s.parameters, map[string]any{"layer": r.Layer.Name, "reduction": reduction})
		s.values += r.Values.Width
	}
	return nil
}

var operands = map[measure.Operand]string{
	measure.OfClean: "clean", measure.OfTransformed: "transformed", measure.OfDifference: "difference", measure.OfShuffledDifference: "shuffled",
}
