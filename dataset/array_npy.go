package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"github.com/noether-ml/noether/tensor"
)

// An npyArray is an array in NumPy's npy format, in the bytes of fileData (of a file, or in
// memory), whose values are read on demand.
type npyArray struct {
	fileData
	offset int64 // of the first value, in bytes
	shape  []int
	// NumPy's letter: 'u' unsigned, 'i' signed integer, 'f' float, 'b' boolean; 'B' for bfloat16.
	kind  byte
	bytes int              // of one value
	order binary.ByteOrder // of the bytes of one value

	columnMajor bool // column-major: the first axis varies fastest
}

// maxNPYHeader bounds the size of the header. NumPy's own headers have about a hundred bytes.
const maxNPYHeader = 1 << 16

var (
	npyDescr = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=]?)([a-zA-Z])(\d{1,2})['"]`)
	npyOrder = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	npyShape = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9L, ]*)\)`) // L: of Python 2
)

// openNPY reads the header of an array (numpy.lib.format, versions 1 to 3) and checks that all
// values are present. It does not read them, unless the array is column-major. (The npyio module
// cannot be used: it reads whole arrays, of at most two dimensions.)
func openNPY(b fileData) (npyArray, error) {
	text, offset, err := npyHeader(b)
	if err != nil {
		return npyArray{}, err
	}
	a := npyArray{fileData: b, offset: offset}
	if err := a.parseType(text); err != nil {
		return a, err
	}
	if err := a.parseShape(text); err != nil {
		return a, err
	}
	if err := a.checkSize(); err != nil || !a.columnMajor {
		return a, err
	}
	return a, a.toRowMajor()
}

// maxTransposed is the largest number of bytes of a column-major array that is read and transposed.
const maxTransposed = 256 << 20

// toRowMajor reads a column-major array into memory and converts it to row-major order. It is an
// error if the array is larger than maxTransposed.
func (a *npyArray) toRowMajor() error {
	n := tensor.Size(a.shape)
	if n > maxTransposed/a.bytes {
		return fmt.Errorf("column-major array larger than %d MiB: save numpy.ascontiguousarray(a)", maxTransposed>>20)
	}
	from, err := a.read(0, n)
	if err != nil {
		return err
	}
	strides := make([]int, len(a.shape)) // of each axis of the result, in values
	step := 1
	for i := len(strides) - 1; i >= 0; i-- {
		strides[i] = step
		step *= a.shape[i]
	}
	// index is the position of value i of the file along each axis, of which the first varies
	// fastest; target is the position of that value in the result.
	to, index, target := make([]byte, len(from)), make([]int, len(strides)), 0
	for i := range n {
		copy(to[target*a.bytes:(target+1)*a.bytes], from[i*a.bytes:])
		for k := range index {
			target += strides[k]
			if index[k]++; index[k] < a.shape[k] {
				break
			}
			target -= strides[k] * a.shape[k]
			index[k] = 0
		}
	}
	a.ReaderAt, a.offset, a.columnMajor = bytes.NewReader(to), 0, false
	return nil
}

// npyHeader returns the dictionary that describes the array and the offset of its values.
func npyHeader(b fileData) (string, int64, error) {
	var start [12]byte
	n, err := b.ReadAt(start[:], 0)
	if err != nil && err != io.EOF {
		return "", 0, err
	}
	if strings.HasPrefix(string(start[:n]), hdf5Signature) {
		return "", 0, errors.New(hdf5Hint)
	}
	if n < 10 || string(start[:6]) != "\x93NUMPY" {
		return "", 0, fmt.Errorf("not an npy array: it does not start with \\x93NUMPY")
	}
	// The length of the dictionary follows at byte 8: 2 bytes in version 1, 4 bytes in 2 and 3.
	offset, length := int64(10), int64(binary.LittleEndian.Uint16(start[8:]))
	if version := start[6]; version == 2 || version == 3 {
		offset, length = 12, int64(binary.LittleEndian.Uint32(start[8:]))
	} else if version != 1 {
		return "", 0, fmt.Errorf("unknown npy version %d: versions 1 to 3 are supported", version)
	}
	if length > maxNPYHeader || offset+length > b.size {
		return "", 0, fmt.Errorf("the npy header claims %d bytes: the file is damaged", length)
	}
	text := make([]byte, length)
	if err := b.readFull(text, offset); err != nil {
		return "", 0, err
	}
	return string(text), offset + length, nil
}

func (a *npyArray) parseType(header string) error {
	m := npyDescr.FindStringSubmatch(header)
	if m == nil {
		return fmt.Errorf("the values are not plain numbers: save an array of uint8 or float32")
	}
	a.order = binary.LittleEndian
	if m[1] == ">" {
		a.order = binary.BigEndian
	}
	a.kind = m[2][0]
	a.bytes, _ = strconv.Atoi(m[3])
	name := m[2] + m[3]
	if !strings.Contains(" b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 ", " "+name+" ") {
		return fmt.Errorf("unsupported NumPy type %s: save booleans, integers or floats of at most 8 bytes", name)
	}
	return nil
}

func (a *npyArray) parseShape(header string) error {
	order, shape := npyOrder.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	if order == nil || shape == nil {
		return fmt.Errorf("the npy header has no shape or no order: the file is damaged")
	}
	for _, text := range strings.Split(shape[1], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		d, err := strconv.Atoi(strings.TrimSuffix(text, "L"))
		if err != nil || d < 0 {
			return fmt.Errorf("invalid dimension %s of the npy array", text)
		}
		a.shape = append(a.shape, d)
	}
	a.columnMajor = order[1] == "True" && len(a.shape) > 1
	return nil
}

// checkSize returns an error if the array is empty or the file too short for its shape.
func (a *npyArray) checkSize() error {
	const maxAxes = 64 // of NumPy
	if len(a.shape) > maxAxes {
		return fmt.Errorf("the array has %d axes: the limit is %d", len(a.shape), maxAxes)
	}
	if slices.Contains(a.shape, 0) {
		return fmt.Errorf("the array of shape %v is empty", a.shape)
	}
	n := int64(1)
	for _, d := range a.shape {
		if n > (math.MaxInt64-a.offset)/int64(a.bytes)/int64(d) {
			return fmt.Errorf("%d bytes are too few for shape %v: is the file damaged?", a.size, a.shape)
		}
		n *= int64(d)
	}
	if end := a.offset + n*int64(a.bytes); end > a.size {
		return fmt.Errorf("%d bytes are too few for shape %v, which needs %d: is the file truncated?", a.size, a.shape, end)
	}
	return nil
}

// rowLen returns the number of values at one index of the first axis, which must exist.
func (a *npyArray) rowLen() int {
	n := 1
	for _, d := range a.shape[1:] {
		n *= d
	}
	return n
}

// read returns the bytes of n values in the order of the file, from value number first on.
func (a *npyArray) read(first, n int) ([]byte, error) {
	raw := make([]byte, n*a.bytes)
	return raw, a.readFull(raw, a.offset+int64(first)*int64(a.bytes))
}

// float reports whether the numbers are of a floating-point type.
func (a *npyArray) float() bool { return a.kind == 'f' || a.kind == 'B' }

// value decodes one number of the array from the start of raw.
func (a *npyArray) value(raw []byte) float64 {
	var bits uint64
	switch a.bytes {
	case 1:
		bits = uint64(raw[0])
	case 2:
		bits = uint64(a.order.Uint16(raw))
	case 4:
		bits = uint64(a.order.Uint32(raw))
	case 8:
		bits = a.order.Uint64(raw)
	}
	switch a.kind {
	case 'f':
		return float(bits, a.bytes)
	case 'B':
		return float64(math.Float32frombits(uint32(bits) << 16))
	case 'i':
		shift := 64 - 8*a.bytes
		return float64(int64(bits<<shift) >> shift)
	}
	return float64(bits)
}

// float returns the value of an IEEE 754 number of 2, 4 or 8 bytes.
func float(bits uint64, size int) float64 {
	switch size {
	case 2:
		return float64(float16.Frombits(uint16(bits)).Float32())
	case 4:
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}
