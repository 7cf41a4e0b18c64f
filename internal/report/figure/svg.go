package figure

import (
	"bytes"
	"io"
	"strings"

	"gonum.org/v1/plot/vg/vgsvg"
)

// An svgCanvas writes SVG with fallback fonts of the same metrics.
type svgCanvas struct{ *vgsvg.Canvas }

// WriteTo implements io.WriterTo.
func (c *svgCanvas) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	if _, err := c.Canvas.WriteTo(&b); err != nil {
		return 0, err
	}
	families := strings.NewReplacer(
		"font-family:Liberation Sans", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif",
		"font-family:Liberation Serif", "font-family:'Liberation Serif','Times New Roman',Times,serif")
	n, err := families.WriteString(w, b.String())
	return int64(n), err
}
