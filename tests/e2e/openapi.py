#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is schema/openapi.yaml what it says to be, and are answers what it says?

    openapi.py check DOCUMENT            valid OpenAPI 3.0, and each example in it fits \
its own schema
    openapi.py answers DOCUMENT FILE     so do the answers in FILE: lines of METHOD, \
PATH (the document's), STATUS and
                                         JSON with tabs between them
    openapi.py queries DOCUMENT          prints which query parameters there are: lines of METHOD, \
PATH and their names

Prints each offence, and how much it looked at; exits 1 if there is an offence, \
77 if a package is missing: of Debian's
python3-jsonschema, python3-yaml, openapi-specification."""
import json
import re
import sys

try:
    import jsonschema
    import yaml
    with open("/usr/share/openapi-specification/schemas/v3.0/schema.json", encoding="utf-8") as f:
        OPENAPI = json.load(f)
except (ImportError, OSError) as missing:
    print(f"skip: {missing} (python3-jsonschema, python3-yaml and openapi-specification)")
    sys.exit(77)

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
JSON_TYPES = ("application/json", "application/problem+json")
offences = []


class UniqueKeys(yaml.SafeLoader):
    """YAML without timestamps, which JSON has not either, in which a key that comes twice is an
    offence."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        for key in sorted(k for k in set(keys) if keys.count(k) > 1):
            offences.append(f"line {node.start_mark.line + 1}: {key} comes twice")
        return super().construct_mapping(node, deep)


UniqueKeys.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if tag != "tag:yaml.org,2002:timestamp"]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()}


class Document:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.tree = yaml.load(f, UniqueKeys)
        self.json = as_json_schema(self.tree)
        self.resolver = jsonschema.RefResolver("", self.json)

    def target(self, thing):
        """What it refers to, if it is a reference."""
        while "$ref" in thing:
            thing = self.resolver.resolve(thing["$ref"])[1]
        return thing

    def described(self, schema):
        """The schemas of the fields of an object; None: it may have any."""
        schema = self.target(schema)
        parts = [self.described(part) for part in schema.get("allOf", [])]
        if "properties" in schema:
            parts.append(schema["properties"])
        if not parts or None in parts or schema.get("additionalProperties"):
            return None
        return {name: field for part in parts for name, field in part.items()}

    def undescribed(self, schema, value, path):
        """Fields of an answer that the document does not name."""
        schema = self.target(schema)
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield from self.undescribed(schema.get("items", {}), item, f"{path}[{i}]")
        fields = self.described(schema) if isinstance(value, dict) else None
        for name, item in value.items() if fields is not None else ():
            if name in fields:
                yield from self.undescribed(fields[name], item, f"{path}.{name}")
            else:
                yield f"{path}.{name} is not described"

    def fit(self, schema, value, where):
        """Whether a value is what a schema says, and has nothing of which it says nothing."""
        formats = jsonschema.FormatChecker()
        validator = jsonschema.Draft4Validator(
            schema, resolver=self.resolver, format_checker=formats)
        for error in validator.iter_errors(value):
            at = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
            offences.append(f"{where}: {at or 'the whole'}: {error.message[:300]}")
        offences.extend(f"{where}: {what}" for what in self.undescribed(schema, value, ""))


def as_json_schema(thing):
    """OpenAPI's schemas are JSON Schema's but for `nullable`."""
    if isinstance(thing, list):
        return [as_json_schema(item) for item in thing]
    if not isinstance(thing, dict):
        return thing
    out = {key: as_json_schema(value) for key, value in thing.items()}
    if out.get("nullable") is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out


def check_references(document, thing, where):
    if isinstance(thing, list):
        for i, item in enumerate(thing):
            check_references(document, item, f"{where}/{i}")
    if not isinstance(thing, dict):
        return
    if isinstance(thing.get("$ref"), str):
        try:
            document.resolver.resolve(thing["$ref"])
        except jsonschema.RefResolutionError as error:
            offences.append(f"{where}: {error}")
    for key, item in thing.items():
        if key != "example":
            check_references(document, item, f"{where}/{key}")


def check_parameters(document, path, item):
    """Those in the path are those that are described, and none comes twice."""
    shared = [document.target(p) for p in item.get("parameters", [])]
    for method in METHODS:
        if method not in item:
            continue
        here = [(p["name"], p["in"])
            for p in shared + [document.target(p) for p in item[method].get("parameters", [])]]
        if sorted(re.findall(r"{(\w+)}", path)) != sorted(
                name for name, place in here if place == "path"):
            offences.append(f"{method} {path}: its parameters are not those in the path")
        if len(set(here)) != len(here):
            offences.append(f"{method} {path}: a parameter comes twice")


ANY_REQUEST = (
    "400", "403", "405", "408", "411", "413", "414", "417", "429", "431",
    "500", "501", "503", "505")


def check_responses(path, item):
    """What any request may be answered, before anybody looks for its path, is said of each."""
    for method in (m for m in METHODS if m in item):
        for status in ANY_REQUEST:
            if status not in item[method]["responses"]:
                offences.append(f"{method} {path}: {status} may be answered, and is not described")


def check_examples(document, thing, where):
    """Each example beside a schema, and each in a schema; each default likewise. Returns how many
    there are."""
    count = 0
    if isinstance(thing, list):
        return sum(check_examples(document, item, f"{where}/{i}") for i, item in enumerate(thing))
    if not isinstance(thing, dict):
        return 0
    for key in ("example", "default"):
        if key not in thing or where.endswith("/properties"):
            continue
        if "schema" not in thing and "/schema" not in where:
            offences.append(f"{where}/{key}: has no schema")
        document.fit(thing.get("schema", thing), thing[key], f"{where}/{key}")
        count += key == "example"
    return count + sum(
        check_examples(document, item, f"{where}/{key}") for key, item in thing.items()
        if key not in ("example", "default"))


def check(document):
    validator = jsonschema.Draft4Validator(OPENAPI)
    for error in validator.iter_errors(document.tree):
        error = jsonschema.exceptions.best_match([error])  # of all alternatives, what comes closest
        offences.append(f"#/{'/'.join(str(p) for p in error.absolute_path)}: {error.message[:300]}")
    check_references(document, document.json, "#")
    if offences:
        return "no example was looked at"
    for path, item in document.json["paths"].items():
        check_parameters(document, path, item)
        check_responses(path, item)
    count = check_examples(document, document.json, "#")
    return (f"OpenAPI {document.tree['openapi']}, "
        f"{len(document.tree['paths'])} paths, {count} examples")


def check_answers(document, file):
    count = 0
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            method, path, status, body = line.rstrip("\n").split("\t", 3)
            where = f"{method} {path}: {status}"
            response = document.json["paths"][path][method.lower()]["responses"].get(status)
            content = document.target(response or {}).get("content", {})
            schemas = [content[kind]["schema"] for kind in JSON_TYPES
                if "schema" in content.get(kind, {})]
            if response is None:
                offences.append(f"{where}: such an answer is not described")
            for schema in schemas:
                document.fit(schema, json.loads(body), where)
            count += len(schemas)
    return f"{count} answers"


def print_queries(document):
    for path, item in document.json["paths"].items():
        for method in (m for m in METHODS if m in item):
            here = [document.target(p)
                for p in item.get("parameters", []) + item[method].get("parameters", [])]
            print(method.upper(), path, *sorted(p["name"] for p in here if p["in"] == "query"))


if len(sys.argv) == 3 and sys.argv[1] == "queries":
    print_queries(Document(sys.argv[2]))
    sys.exit(0)
if len(sys.argv) == 3 and sys.argv[1] == "check":
    done = check(Document(sys.argv[2]))
elif len(sys.argv) == 4 and sys.argv[1] == "answers":
    done = check_answers(Document(sys.argv[2]), sys.argv[3])
else:
    sys.exit(__doc__)
for offence in offences:
    print(offence)
print(f"{done}, {len(offences)} offences")
sys.exit(1 if offences else 0)
