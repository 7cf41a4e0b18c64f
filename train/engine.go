package train

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// An engine executes one graph with values that are bound once for each size of batch.
type engine struct {
	runtime *ort.Runtime
	session *ort.Session
	names   []string
	in      []*ort.Value
	own     []*ort.Value // to close
	cache   map[string]*ort.Value
}

func (t *Trainer) newEngine(graph *onnx.Model) (*engine, error) {
	session, err := t.runtime.NewSession(graph, t.program.spec.Engine)
	if err != nil {
		return nil, err
	}
	names := session.Inputs()
	return &engine{runtime: t.runtime, session: session, names: names, in: make([]*ort.Value, len(names)), cache: map[string]*ort.Value{}}, nil
}

func (e *engine) close() error {
	for _, v := range e.own {
		v.Close()
	}
	e.own = nil
	return e.session.Close()
}

// bind puts a value in the place of an input. A graph may do without some, such as the target of a constant loss.
func (e *engine) bind(name string, v *ort.Value) {
	if i := slices.Index(e.names, name); i >= 0 {
		e.in[i] = v
	}
}

// value is the buffer of an input in one shape, made once.
func (e *engine) value(name string, t onnx.Type, shape ...int) (*ort.Value, error) {
	key := fmt.Sprint(name, shape)
	v, ok := e.cache[key]
	if !ok {
		var err error
		if v, err = e.runtime.NewValue(t, shape...); err != nil {
			return nil, err
		}
		e.cache[key], e.own = v, append(e.own, v)
	}
	return v, nil
}

func (e *engine) floats(name string, x tensor.Tensor) error {
	v, err := e.value(name, onnx.Float, x.Shape...)
	if err != nil {
		return err
	}
	copy(ort.Data[float32](v), x.Data)
	e.bind(name, v)
	return nil
}

func (e *engine) ints(name string, x []int) error {
	v, err := e.value(name, onnx.Int64, len(x))
	if err != nil {
		return err
	}
	for i, k := range x {
		ort.Data[int64](v)[i] = int64(k)
	}
	e.bind(name, v)
	return nil
}

func (e *engine) number(name string, x float32) error {
	v, err := e.value(name, onnx.Float)
	if err != nil {
		return err
	}
	ort.Data[float32](v)[0] = x
	e.bind(name, v)
	return nil
}
