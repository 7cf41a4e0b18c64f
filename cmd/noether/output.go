package main

import (
	"encoding/json"
	"os"
)

// printJSON prints the output of --json.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", " ")
	return e.Encode(v)
}
