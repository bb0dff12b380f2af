# A relay from the files of a release: relay-0.1.0.template.json and the unpacked relay-0.1.0-assets.zip beside this file.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.40, < 7.0" }
  }
}

variable "region" { default = "eu-central-1" }
variable "bucket" { description = "a new, private bucket for the template and the functions" }
variable "release" { default = "0.1.0" }

provider "aws" { region = var.region }

locals {
  template = "relay-${var.release}.template.json"
}

resource "aws_s3_bucket" "assets" { bucket = var.bucket }

resource "aws_s3_bucket_public_access_block" "assets" {
  bucket                  = aws_s3_bucket.assets.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

# Assets of former releases stay, because a rollback reads them.
resource "aws_s3_object" "assets" {
  for_each = fileset("${path.module}/assets", "**")
  bucket   = aws_s3_bucket.assets.id
  key      = each.value
  source   = "${path.module}/assets/${each.value}"
}

resource "aws_s3_object" "template" {
  bucket = aws_s3_bucket.assets.id
  key    = local.template
  source = "${path.module}/${local.template}"
  etag   = filemd5("${path.module}/${local.template}")
}

resource "aws_cloudformation_stack" "relay" {
  name         = "relay" # Names in the template begin with it.
  template_url = "https://${aws_s3_bucket.assets.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  parameters   = { AssetBucket = aws_s3_bucket.assets.id }
  capabilities = ["CAPABILITY_NAMED_IAM"]
  depends_on   = [aws_s3_object.assets]
  timeouts {
    create = "60m"
    update = "90m"
  }
  lifecycle { prevent_destroy = true }
}

output "base_url" { value = aws_cloudformation_stack.relay.outputs["BaseUrl"] }
