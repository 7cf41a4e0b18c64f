package spec

import (
	"reflect"
	"testing"
)

// TestEverySourceOpens checks that the keys of each kind of data have the method open.
func TestEverySourceOpens(t *testing.T) {
	t.Parallel()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Data]()) {
		key := f.Tag.Get("key")
		if !f.IsExported() || f.Type.Kind() != reflect.Pointer || key == "corrupt" || key == "split" { // these two are no sources
			continue
		}
		if !f.Type.Implements(reflect.TypeFor[opener]()) {
			t.Errorf("%s: %v has no method open, study/spec/source.go", key, f.Type)
		}
	}
}
