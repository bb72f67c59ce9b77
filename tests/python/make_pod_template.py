"""Makes operator/api/pod_template.schema.yaml: the types of a PodTemplateSpec, from Kubernetes' own OpenAPI.

Run it after Kubernetes' version in deploy/cluster/tools/kubernetes/go.mod has changed.
"""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "operator/api/pod_template.schema.yaml"
FIRST = "io.k8s.api.core.v1.PodTemplateSpec"
# What Kubernetes checks besides types, where a mistake is likely.
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
# What a job's template may leave out, because Muster adds it.
ADDED = {"PodSpec": ["containers"]}
BOUNDS = {("ContainerPort", "containerPort"): PORT, ("ContainerPort", "hostPort"): PORT}


def module(name):
    listed = subprocess.run(["go", "list", "-m", "-json", name], capture_output=True, text=True, check=True,
                            cwd=ROOT / "deploy/cluster/tools/kubernetes", timeout=600)
    return json.loads(listed.stdout)


def short(name):
    return name.rpartition(".")[2]


def field(schema, wanted):
    """The schema of a field in the words of ours; types that it names are added to `wanted`."""
    for one in [schema, *schema.get("allOf", [])]:
        if reference := one.get("$ref"):
            name = reference.rpartition("/")[2]
            wanted.append(name)
            return {"$ref": short(name)}
    made = {key: schema[key] for key in ("type", "enum") if key in schema}
    if schema.get("format") == "int32":
        made |= {"minimum": -2**31, "maximum": 2**31 - 1}
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            made[inner] = field(schema[inner], wanted)
    return made


def definition(name, schema, wanted):
    if short(name) == "IntOrString":
        return {"x-kubernetes-int-or-string": True}
    if short(name) in ("Quantity", "FieldsV1"):
        return {}  # a string or a number; anything
    made = {"type": schema["type"]}
    if required := [key for key in schema.get("required", []) if key not in ADDED.get(short(name), [])]:
        made["required"] = required
    if "properties" in schema:
        made["properties"] = {key: BOUNDS.get((short(name), key)) or field(one, wanted)
                              for key, one in schema["properties"].items()}
    return made


def flow(value):
    """YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return json.dumps(value) if isinstance(value, bool) else str(value)


def main():
    kubernetes = module("k8s.io/kubernetes")
    text = (pathlib.Path(kubernetes["Dir"]) / "api/openapi-spec/v3/api__v1_openapi.json").read_text()
    schemas = json.loads(text)["components"]["schemas"]
    made, wanted = {}, [FIRST]
    while wanted:
        name = wanted.pop()
        if short(name) not in made:
            made[short(name)] = definition(name, schemas[name], wanted)
    lines = ["# The types of a PodTemplateSpec, made by tests/python/make_pod_template.py from Kubernetes (Apache-2.0).",
             f"version: \"{'.'.join(kubernetes['Version'].lstrip('v').split('.')[:2])}\"", "types:"]
    for name, one in sorted(made.items()):
        properties = one.pop("properties", {})
        lines.append(f"  {name}:" + ("" if properties else f" {flow(one)}"))
        lines += [f"    {key}: {flow(value)}" for key, value in one.items() if properties]
        if properties:
            lines.append("    properties:")
            lines += [f"      {key}: {flow(value)}" for key, value in sorted(properties.items())]
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
