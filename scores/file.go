package scores

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// decodeStrict decodes JSON and rejects unknown fields and data after the value.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	switch err := d.Decode(v); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file is truncated")
	case err != nil:
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the end of the JSON value")
	}
	return nil
}
