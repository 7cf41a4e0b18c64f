package oip

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// A datatype is an element type of the protocol.
type datatype struct {
	size int         // of an element, in bytes
	port engine.Type // of arrays that are converted to it; "": it cannot be an input
	read func(b []byte) float32
}

var datatypes = map[string]datatype{
	"FP32":   {4, engine.Float, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	"FP64":   {8, engine.Double, func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }},
	"FP16":   {2, engine.Float, func(b []byte) float32 { return float16.Frombits(binary.LittleEndian.Uint16(b)).Float32() }},
	"BF16":   {2, engine.Float, func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) }},
	"INT8":   {1, engine.Int8, func(b []byte) float32 { return float32(int8(b[0])) }},
	"INT16":  {2, "", func(b []byte) float32 { return float32(int16(binary.LittleEndian.Uint16(b))) }},
	"INT32":  {4, engine.Int32, func(b []byte) float32 { return float32(int32(binary.LittleEndian.Uint32(b))) }},
	"INT64":  {8, engine.Int64, func(b []byte) float32 { return float32(int64(binary.LittleEndian.Uint64(b))) }},
	"UINT8":  {1, engine.Uint8, func(b []byte) float32 { return float32(b[0]) }},
	"UINT16": {2, "", func(b []byte) float32 { return float32(binary.LittleEndian.Uint16(b)) }},
	"UINT32": {4, "", func(b []byte) float32 { return float32(binary.LittleEndian.Uint32(b)) }},
	"UINT64": {8, "", func(b []byte) float32 { return float32(binary.LittleEndian.Uint64(b)) }},
	"BOOL":   {1, engine.Bool, func(b []byte) float32 { return float32(b[0] & 1) }},
}

// appendBinary appends the elements of an array as a datatype, little-endian.
func appendBinary(to []byte, a *engine.Array, name string) ([]byte, error) {
	values, ok := a.Data.([]float32)
	switch {
	case ok && name == "FP16":
		for _, v := range values {
			to = binary.LittleEndian.AppendUint16(to, float16.Fromfloat32(v).Bits())
		}
		return to, nil
	case ok && name == "BF16":
		for _, v := range values {
			to = binary.LittleEndian.AppendUint16(to, bfloat16(v))
		}
		return to, nil
	}
	to, err := binary.Append(to, binary.LittleEndian, a.Data)
	if err != nil {
		return nil, fmt.Errorf("an input of type %T cannot be sent: %w", a.Data, err)
	}
	return to, nil
}

// bfloat16 rounds to the nearest number of eight bits of precision, to even at a tie.
func bfloat16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// appendJSON appends the elements of an array as a list of JSON. JSON has no NaN and no infinities,
// which are an error.
func appendJSON(to []byte, a *engine.Array, name string) ([]byte, error) {
	if name == "FP16" || name == "BF16" {
		return nil, fmt.Errorf("an input has the type %s, which JSON does not have, and the server takes no binary tensors", name)
	}
	to = append(to, '[')
	err := eachElement(a.Data, func(i int, v any) error {
		if i > 0 {
			to = append(to, ',')
		}
		switch v := v.(type) {
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("value %d of an input is %v, which JSON does not have, and the server takes no binary tensors", i, v)
			}
			to = strconv.AppendFloat(to, v, 'g', -1, 64)
		case float32:
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("value %d of an input is %v, which JSON does not have, and the server takes no binary tensors", i, v)
			}
			to = strconv.AppendFloat(to, float64(v), 'g', -1, 32)
		case int64:
			to = strconv.AppendInt(to, v, 10)
		case bool:
			to = strconv.AppendBool(to, v)
		}
		return nil
	})
	return append(to, ']'), err
}

// eachElement calls f with each element of an array: a float32, float64, int64 or bool.
func eachElement(data any, f func(i int, v any) error) error {
	switch data := data.(type) {
	case []float32:
		return each(data, f, func(v float32) any { return v })
	case []float64:
		return each(data, f, func(v float64) any { return v })
	case []int8:
		return each(data, f, func(v int8) any { return int64(v) })
	case []uint8:
		return each(data, f, func(v uint8) any { return int64(v) })
	case []int32:
		return each(data, f, func(v int32) any { return int64(v) })
	case []int64:
		return each(data, f, func(v int64) any { return v })
	case []bool:
		return each(data, f, func(v bool) any { return v })
	}
	return fmt.Errorf("an input of type %T cannot be sent", data)
}

func each[T any](data []T, f func(int, any) error, convert func(T) any) error {
	for i, v := range data {
		if err := f(i, convert(v)); err != nil {
			return err
		}
	}
	return nil
}

// A wireTensor is a tensor in the JSON of a request or an answer.
type wireTensor struct {
	Name       string          `json:"name"`
	Shape      []int           `json:"shape,omitempty"`
	Datatype   string          `json:"datatype,omitempty"`
	Parameters map[string]any  `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`

	at placement // in a region
}

type wireRequest struct {
	Inputs  []wireTensor `json:"inputs"`
	Outputs []wireTensor `json:"outputs,omitempty"`
}

// A call is what a request to infer asks.
type call struct {
	inputs  []wireInput
	outputs []wireTensor // names and parameters; nil: all outputs
}

type wireInput struct {
	name, datatype string
	array          *engine.Array
}

// callOf returns the call of arrays for the inputs of a model, in their order.
func (n *Network) callOf(arrays []*engine.Array, outputs ...wireTensor) call {
	c := call{outputs: outputs}
	for i, p := range n.metadata.Inputs {
		c.inputs = append(c.inputs, wireInput{p.Name, n.types[p.Name], arrays[i]})
	}
	return c
}

// encode returns the body of a request, and the length of its JSON if binary data follow.
func (c call) encode(asBytes bool) (body []byte, header int, err error) {
	var r wireRequest
	var data []byte
	for _, in := range c.inputs {
		t := wireTensor{Name: in.name, Shape: in.array.Shape, Datatype: in.datatype}
		before := len(data)
		if asBytes {
			data, err = appendBinary(data, in.array, t.Datatype)
			t.Parameters = map[string]any{"binary_data_size": len(data) - before}
		} else {
			t.Data, err = appendJSON(nil, in.array, t.Datatype)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("input %s: %w", in.name, err)
		}
		r.Inputs = append(r.Inputs, t)
	}
	for _, t := range c.outputs {
		if asBytes {
			t.Parameters = with(t.Parameters, map[string]any{"binary_data": true})
		}
		r.Outputs = append(r.Outputs, t)
	}
	if body, err = json.Marshal(r); err != nil || !asBytes {
		return body, 0, err
	}
	return append(body, data...), len(body), nil
}

// with returns the union of two sets of parameters, which stay as they are.
func with(a, b map[string]any) map[string]any {
	if len(a) == 0 {
		return b
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// decode returns the outputs of an answer by name, as float32.
func decode(a answer) (map[string]tensor.Tensor, []string, error) {
	head := a.body
	if a.header > 0 {
		head = a.body[:a.header]
	}
	var r struct {
		Error   string       `json:"error"`
		Outputs []wireTensor `json:"outputs"`
	}
	if err := json.Unmarshal(head, &r); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	if r.Error != "" {
		return nil, nil, fmt.Errorf("%w: %s", errAnswer, message([]byte(r.Error)))
	}
	rest := a.body[len(head):]
	out, order := map[string]tensor.Tensor{}, []string(nil)
	for _, t := range r.Outputs {
		values, left, err := t.values(rest)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: output %q %w", errAnswer, t.Name, err)
		}
		rest = left
		if _, twice := out[t.Name]; twice {
			return nil, nil, fmt.Errorf("%w: it has output %q twice", errAnswer, t.Name)
		}
		if values == nil {
			continue // texts
		}
		out[t.Name] = tensor.Tensor{Shape: t.Shape, Data: values}
		order = append(order, t.Name)
	}
	if len(rest) > 0 {
		return nil, nil, fmt.Errorf("%w: %d bytes follow its tensors", errAnswer, len(rest))
	}
	return out, order, nil
}

// values returns the elements, and what of the binary data belongs to later tensors. Texts have no
// values.
func (t wireTensor) values(binaries []byte) (values []float32, rest []byte, err error) {
	n := 1
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt32/d {
			return nil, nil, fmt.Errorf("has the shape %v", t.Shape)
		}
		n *= d
	}
	size, inBinary := t.Parameters["binary_data_size"].(float64)
	if inBinary && (size < 0 || size > float64(len(binaries)) || size != math.Trunc(size)) {
		return nil, nil, fmt.Errorf("has %v of %d bytes", size, len(binaries))
	}
	d, ok := datatypes[t.Datatype]
	switch {
	case t.Datatype == "BYTES":
		return nil, binaries[int(size):], nil
	case !ok:
		return nil, nil, fmt.Errorf("has the unknown type %q", t.Datatype)
	case !inBinary:
		values, err = numbers(t.Data, t.Shape)
		return values, binaries, err
	case int(size) != n*d.size:
		return nil, nil, fmt.Errorf("has %d bytes for the shape %v of %s", int(size), t.Shape, t.Datatype)
	}
	values = make([]float32, n)
	for i := range values {
		values[i] = d.read(binaries[i*d.size:])
	}
	return values, binaries[int(size):], nil
}

// numbers returns the numbers of a list of JSON, flat or nested as the shape says, row by row. Servers
// write null for NaN and infinities.
func numbers(list json.RawMessage, shape []int) ([]float32, error) {
	n := tensor.Size(shape)
	values := make([]float32, 0, min(n, len(list)))
	nest := nesting{shape: shape}
	for at := 0; at < len(list); {
		switch c := list[at]; c {
		case '[', ']':
			if err := nest.bracket(c == '['); err != nil {
				return nil, err
			}
			at++
		case ',', ' ', '\n', '\t', '\r':
			at++
		default:
			end := at
			for end < len(list) && !strings.ContainsRune("[], \n\t\r", rune(list[end])) {
				end++
			}
			v, err := number(list[at:end])
			if err == nil {
				err = nest.value()
			}
			if err != nil {
				return nil, err
			}
			values, at = append(values, v), end
		}
	}
	if len(values) != n {
		return nil, fmt.Errorf("has %d values for a shape of %d", len(values), n)
	}
	return values, nil
}

func number(word []byte) (float32, error) {
	switch string(word) {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	case "null":
		return float32(math.NaN()), nil
	}
	v, err := strconv.ParseFloat(string(word), 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // beyond float32 it is an infinity
		return 0, fmt.Errorf("has the value %.40s", word)
	}
	return float32(v), nil
}

// A nesting checks that lists in lists are those of a shape: a server that transposes its data, but
// not the shape, must not be believed.
type nesting struct {
	shape  []int
	counts []int // elements so far, of each list that is open
	leaves int   // lists about a number; 0: none was seen
}

func (n *nesting) bracket(open bool) error {
	if open {
		n.element()
		n.counts = append(n.counts, 0)
		return nil
	}
	depth := len(n.counts)
	if depth == 0 {
		return errors.New("has lists that do not open")
	}
	count := n.counts[depth-1]
	n.counts = n.counts[:depth-1]
	if n.leaves > 1 && depth <= len(n.shape) && count != n.shape[depth-1] {
		return fmt.Errorf("has a list of %d where the shape %v has %d", count, n.shape, n.shape[depth-1])
	}
	return nil
}

func (n *nesting) value() error {
	n.element()
	depth := len(n.counts)
	if n.leaves == 0 {
		n.leaves = depth
	}
	if depth != n.leaves || depth > 1 && depth != len(n.shape) {
		return fmt.Errorf("has a number in %d lists for the shape %v", depth, n.shape)
	}
	return nil
}

func (n *nesting) element() {
	if len(n.counts) > 0 {
		n.counts[len(n.counts)-1]++
	}
}
