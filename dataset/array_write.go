package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// WriteNPY writes a tensor in NumPy's npy format, version 1.0, as little-endian float32 in C order.
func WriteNPY(w io.Writer, t tensor.Tensor) error {
	dims := make([]string, len(t.Shape))
	for i, d := range t.Shape {
		dims[i] = fmt.Sprintf("%d,", d)
	}
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", strings.Join(dims, " "))
	const prefix = 10 // bytes of magic, version and length
	// NumPy aligns values to 64 bytes.
	header += strings.Repeat(" ", 63-(prefix+len(header))%64) + "\n"
	if len(header) > 0xffff {
		return fmt.Errorf("writing an array: too many axes (%d)", len(t.Shape))
	}
	start := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	if _, err := w.Write(append(start, header...)); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, t.Data)
}
