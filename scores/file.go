package scores

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// readJSON reads a file that holds one JSON value and nothing else.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err // names the path
	}
	if err := strict(data, v); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// strict decodes JSON and refuses unknown fields and anything after the value.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	switch err := d.Decode(v); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file is cut short")
	case err != nil:
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more in the file after its end")
	}
	return nil
}
