// Package checksum adds checksums to text files, so that an altered file is recognised.
//
// The study file (YAML text that says what to measure) in a folder of results has its checksum in a
// comment in the first line. An HTML page has it in a comment after its end, since a page must
// begin with <!DOCTYPE html>.
package checksum

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errAltered = errors.New("the file was altered: its checksum does not match")

const studyComment = "# checksum of the lines below: "

// Prepend returns a YAML text with its checksum in a line before it.
func Prepend(text string) string { return firstLine(text) + text }

func firstLine(text string) string {
	return fmt.Sprintf("%s%08x\n", studyComment, crc32.Checksum([]byte(text), castagnoli))
}

// Check returns a text that Prepend has written without its first line. It returns an error if the
// checksum does not match. A text without a checksum is returned as it is.
func Check(text string) (string, error) {
	if !strings.HasPrefix(text, studyComment) {
		return text, nil
	}
	line, rest, _ := strings.Cut(text, "\n")
	if line+"\n" != firstLine(rest) {
		return "", fmt.Errorf("%w; run the original study again, or remove the first line to accept the file as it is", errAltered)
	}
	return rest, nil
}

const pageComment = "<!-- checksum of this page: "

// A PageWriter writes an HTML page with its checksum after its end.
type PageWriter struct {
	w   io.Writer
	sum hash.Hash32
}

// NewPageWriter returns a PageWriter that writes to w.
func NewPageWriter(w io.Writer) *PageWriter { return &PageWriter{w, crc32.New(castagnoli)} }

// Write implements io.Writer.
func (p *PageWriter) Write(data []byte) (int, error) {
	n, err := p.w.Write(data)
	p.sum.Write(data[:n])
	return n, err
}

// Close writes the checksum. It does not close the underlying writer.
func (p *PageWriter) Close() error {
	_, err := io.WriteString(p.w, pageLine(p.sum.Sum32()))
	return err
}

func pageLine(sum uint32) string { return fmt.Sprintf("%s%08x -->\n", pageComment, sum) }

// CheckPage returns an error if a page of a PageWriter was cut short or altered. A page without a
// checksum must end with </html>.
func CheckPage(page []byte) error {
	end := bytes.LastIndex(page, []byte(pageComment))
	switch {
	case end >= 0 && string(page[end:]) != pageLine(crc32.Checksum(page[:end], castagnoli)):
		return errAltered
	case end < 0 && !bytes.HasSuffix(bytes.TrimSpace(page), []byte("</html>")):
		return errors.New("the page is cut short")
	}
	return nil
}
