package main

import (
	"encoding/json"
	"os"
)

// printJSON is what --json asks for.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", " ")
	return e.Encode(v)
}
